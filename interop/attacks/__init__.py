"""Attacks on the product from outside, by its public faces alone.

Written from the documentation, as a stranger would: the command line in real processes, HTTP,
servers that mean harm, catalogs and folders of strangers. Nothing of toolfold is imported.

    make attacks
    PYTHONPATH=interop python -m attacks --only 7 --toolfold PATH
"""
