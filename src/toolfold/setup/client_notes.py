"""What a person should know of some clients beyond their files: how they show and run tools."""

from __future__ import annotations

__all__ = ["CLAUDE_CODE", "CODEX", "QWEN_CODE"]

CLAUDE_CODE = (
    "Claude Code writes to this file while it runs: close its sessions before you change "
    "it.\n\n"
    "It keeps servers' tools behind a search of its own, `ToolSearch`. `alwaysLoad` takes "
    "toolfold's out of it: the model sees `mcp__toolfold__tool_search`, `…tool_describe` "
    "and `…tool_call` from its first request on, and a task takes one search and one "
    "call; without it, one request more, and only where the model thinks of looking. What "
    "a folded list shows in full asks for the same by itself (`_meta: "
    '{"anthropic/alwaysLoad": true}`), for entries that others wrote; but only the key in '
    "the entry makes Claude Code wait for the gateway before it begins. Where you let "
    "toolfold fold nothing (`enabled: off`), take `alwaysLoad` out: then Claude Code's "
    "own search is the better one to have. What joins a list in the middle of a "
    "conversation goes behind that search all the same: stay with `strategy: bridge`.\n\n"
    "It asks before it runs `tool_call`, and to allow that for good is to allow every "
    "tool behind it. Let the gateway ask about those that may destroy something instead: "
    "`serve: {destructive: ask}`. With `claude -p` nobody can be asked: give "
    "`--allowedTools mcp__toolfold`.\n\n"
    "A result that is too long (`MAX_MCP_OUTPUT_TOKENS` sets the bound) is kept in a "
    "file, and the model reads its beginning and where the rest is. A tool that asks for "
    'more room itself (`_meta: {"anthropic/maxResultSizeChars": …}`) gets it only where it '
    "is listed: Claude Code reads that in the list, and behind `tool_call` there is one "
    "bound for all. Keep such a tool open with `core`; that `tool_call` asked for the most "
    "room of any tool would let every other one fill the context."
)

CODEX = (
    "The command line, the desktop application and the editors' extension read the same "
    "file. A project's file is read where the project is trusted.\n\n"
    "Codex gives a server one second to start and list its tools, and begins without it; "
    "a gateway that starts several servers takes longer. `required` makes it wait, and "
    "`startup_timeout_sec` says how long. The price: where toolfold cannot start at all, "
    "neither does Codex, and it says why. Leave `required` out if you would rather begin "
    "without tools.\n\n"
    "Codex asks before it runs `tool_call`, since what is behind it may destroy "
    'something. In `codex exec`, where nobody can be asked, the call fails ("requires '
    'approval") until you add `default_tools_approval_mode = "approve"` to the entry. '
    "That allows every tool behind it: `serve: {destructive: refuse}` in toolfold's "
    "configuration, or `deny`, keeps out what must not run.\n\n"
    "What a model sees depends on the model. One that Codex does not know is given the "
    "namespace `mcp__toolfold` with `tool_search`, `tool_describe` and `tool_call`, and a "
    "task takes one search and one call. Models with code mode (`gpt-6-sol`) are given "
    "one tool, `exec`, which runs JavaScript; no server's tools are in the request, nor "
    "is what the server says of itself. They are there as functions, "
    "`tools.mcp__toolfold__tool_search({query})`, and the model is told to look for them "
    "in `ALL_TOOLS` by words of their names and descriptions. It finds ours by `tool`, "
    "`search` or `toolfold`, and by the name of any of your servers, which the search "
    "tool's description lists with their counts; with `listing: names` by words of the "
    "tools' own names too, and in code mode that costs nothing until it is printed. So "
    'give servers telling names, and say in `AGENTS.md` that there are more tools: "For '
    "anything outside this folder, look for a tool first: `await "
    "tools.mcp__toolfold__tool_search({query: '…'})`, then "
    '`tools.mcp__toolfold__tool_call({name, arguments})`."\n\n'
    "Codex does not ask again for a list that has changed. So `--wait` lets the first "
    "list wait for servers that start slowly, 15 seconds at most; what comes after it "
    "is still found through the bridge. `strategy: reveal` does not work there: what a "
    "search adds to the list is never seen.\n\n"
    "Of a long result the model is given the beginning and the end, some 12,000 "
    "characters."
)

QWEN_CODE = (
    "It keeps servers' tools behind a search of its own, with tools that are called "
    "`tool_search` and `tool_call` as ours are. `alwaysLoadTools` takes toolfold's out of "
    "it, and `TOOLFOLD_BRIDGE_PREFIX` calls them `folded_search`, `folded_describe` and "
    "`folded_call`, so that no answer of ours speaks of the wrong one. Over HTTP, set "
    "`bridge_prefix: folded` in the gateway's configuration."
)
