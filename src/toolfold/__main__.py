"""`python -m toolfold` is the command line."""

from toolfold.cli import main

main(prog_name="toolfold")
