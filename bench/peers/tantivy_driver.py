"""The tantivy search engine, one stemmed English field, in memory.

One layer is timed: `search`, from the query's text to the names.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import tantivy
from protocol import Found, Tool, document, serve, timed


def load(tools: Sequence[Tool], limit: int) -> Callable[[str], Found]:
    """Index the tools and return the search."""
    builder = tantivy.SchemaBuilder()
    builder.add_text_field("name", stored=True, tokenizer_name="raw")
    builder.add_text_field("text", stored=False, tokenizer_name="en_stem")
    index = tantivy.Index(builder.build())
    writer = index.writer(num_threads=1)
    for tool in tools:
        writer.add_document(tantivy.Document(name=tool["name"], text=document(tool)))
    writer.commit()
    writer.wait_merging_threads()
    index.reload()
    searcher = index.searcher()

    def ranked(query: str) -> list[str]:
        # Without its punctuation a request holds no query syntax.
        words = " ".join(re.findall(r"\w+", query)).lower()
        hits = searcher.search(index.parse_query(words, ["text"]), limit).hits
        return [searcher.doc(address)["name"][0] for _, address in hits]

    def search(query: str) -> Found:
        found, ms = timed(lambda: ranked(query))
        return Found(found, {"search": ms})

    return search


if __name__ == "__main__":
    serve(load)
