"""Run the attacks and print which held: `PYTHONPATH=interop python -m attacks`."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
import traceback
from pathlib import Path

from attacks import consent, cost, leaks, names, scopes
from attacks.attack import ATTACKS, Attack, GaveWay
from attacks.product import Product

MODULES = (names, scopes, cost, leaks, consent)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m attacks", description=__doc__)
    parser.add_argument("--only", type=int, action="append", help="an item's attacks; repeatable")
    parser.add_argument("--like", default="", help="those whose promise has these words")
    parser.add_argument("--toolfold", type=Path, help="an interpreter, or a source tree")
    parser.add_argument("--trace", action="store_true", help="print tracebacks")
    wanted = parser.parse_args()
    product = Product.at(wanted.toolfold)
    lost = tried = 0
    for attack in sorted(ATTACKS, key=lambda each: each.item):
        if wanted.like not in attack.promise or attack.item not in (wanted.only or [attack.item]):
            continue
        began = time.monotonic()
        why = _tried(attack, product, wanted.trace)
        tried += 1
        lost += why is not None
        seconds = time.monotonic() - began
        word = "held    " if why is None else "GAVE WAY"
        print(f"{attack.item:>3}  {word}  {seconds:5.1f} s  {attack.promise}", flush=True)
        if why is not None:
            print(f"                         {' '.join(why.split())}", flush=True)
    print(f"\n{tried - lost} of {tried} held")
    sys.exit(1 if lost else 0)


def _tried(attack: Attack, product: Product, trace: bool) -> str | None:
    """Return why an attack succeeded, or None."""
    with tempfile.TemporaryDirectory(prefix="attack-", ignore_cleanup_errors=True) as folder:
        try:
            attack.run(product, Path(folder))
        except GaveWay as error:
            return str(error)
        except Exception as error:  # a product that cannot even be asked did not hold
            if trace:
                traceback.print_exc()
            return f"{type(error).__name__}: {error}"
    return None


if __name__ == "__main__":
    main()
