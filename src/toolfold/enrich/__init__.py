"""Words from a model: requests and synonyms for each tool, asked for, checked, kept in a file."""

from toolfold.enrich.author import Author, Estimate, estimated
from toolfold.enrich.run import EnrichProgress, EnrichReport, enrich, to_write
from toolfold.enrich.words_file import WordsFile

__all__ = [
    "Author",
    "EnrichProgress",
    "EnrichReport",
    "Estimate",
    "WordsFile",
    "enrich",
    "estimated",
    "to_write",
]
