"""Folding a catalog that nobody here holds: the bridge, over what is kept in PostgreSQL."""

from toolfold.shared_fold.fold_shared import fold_shared

__all__ = ["fold_shared"]
