"""Tables that can be read aloud: a caption, a head for every column and every row.

A table that is wider than the page scrolls by itself, by keyboard too; one of too many rows
says how many it leaves out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from toolfold.evaluation.report.markup import Markup, bounded, element, joined

__all__ = ["TableColumn", "table", "table_of"]

_ROWS_AT_MOST = 1_000
_WORDS_FROM = 24


@dataclass(frozen=True, slots=True)
class TableColumn:
    """One column."""

    head: str
    about: str = ""
    """What it means; listed below the table."""

    is_number: bool = True


def table(
    caption: str, columns: Sequence[TableColumn], rows: Sequence[Sequence[str]], *, heads: int = 1
) -> Markup:
    """Return a table.

    Args:
        caption: What it shows.
        columns: Its columns.
        rows: The cells of each row, texts or markup.
        heads: How many cells, from the first on, say what a row is of.
    """
    shown = rows[:_ROWS_AT_MOST]
    made = element(
        "table",
        element("caption", caption),
        element("thead", element("tr", [_head(column) for column in columns])),
        element("tbody", [_row(row, columns, heads) for row in shown]),
    )
    rest = len(rows) - len(shown)
    return joined(
        element("div", made, class_="wide", tabindex=0, role="region", aria_label=caption),
        element("p", f"{rest:,} more rows are left out.", class_="note") if rest else None,
        _meanings(columns),
    )


def table_of(caption: str, rows: Sequence[dict[str, object]]) -> Markup:
    """Return a table of records: a column for each key that any of them has."""
    keys = list(dict.fromkeys(key for row in rows for key in row))
    columns = [
        TableColumn(key, is_number=any(isinstance(row.get(key), int | float) for row in rows))
        for key in keys
    ]
    cells = [[_plain(row.get(key)) for key in keys] for row in rows]
    return table(caption, columns, cells)


def _head(column: TableColumn) -> Markup:
    return element(
        "th", bounded(column.head), scope="col", class_="number" if column.is_number else None
    )


def _row(row: Sequence[str], columns: Sequence[TableColumn], heads: int) -> Markup:
    cells = zip(row, columns, strict=True)
    return element("tr", [_cell(cell, column, i < heads) for i, (cell, column) in enumerate(cells)])


def _cell(cell: str, column: TableColumn, is_head: bool) -> Markup:
    cell = bounded(cell)
    if is_head:
        return element("th", cell, scope="row")
    if column.is_number:
        return element("td", cell, class_="number")
    return element("td", cell, class_="words" if len(cell) >= _WORDS_FROM else None)


def _meanings(columns: Sequence[TableColumn]) -> Markup | None:
    told = [column for column in columns if column.about]
    if not told:
        return None
    pairs = [(element("dt", column.head), element("dd", column.about)) for column in told]
    listed = element("dl", [one for pair in pairs for one in pair])
    return element("details", element("summary", "What the columns mean"), listed)


def _plain(value: object) -> str:
    if value is None:
        return "–"
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    return f"{value:,.3f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)
