"""The old path of `toolfold.store.entries`."""

from toolfold._moved import moved

__getattr__ = moved(
    __name__,
    "toolfold.store.entries",
    {"MemoryStore": "MemoryEntries", "SqliteStore": "SqliteEntries"},
)
