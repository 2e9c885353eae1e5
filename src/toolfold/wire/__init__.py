"""Tools on the wire: OpenAI chat and Responses, Anthropic, MCP, Gemini and plain records.

`read` recognises the shape of each entry by itself; `write` puts a tool into any shape.
A tool written in the shape it came in is the record that came in, unknown fields and
all.
"""

from toolfold.wire.read import Entry, read
from toolfold.wire.write import write

__all__ = ["Entry", "read", "write"]
