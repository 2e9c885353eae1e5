"""The old path of `toolfold.invisible`."""

from toolfold._moved import moved

__getattr__ = moved(
    __name__,
    "toolfold.invisible",
    {
        "marks": "marks",
        "shown": "shown",
        "shown_texts": "shown_texts",
        "shown_tool": "shown_tool",
    },
)
