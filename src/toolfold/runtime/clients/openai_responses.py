"""Models behind OpenAI's `/responses`.

Nothing is kept at the provider: the whole conversation is sent with every request, and
reasoning comes and goes sealed, in the items of the model's replies. They go back as they
came. Reasoning that cannot go back (another model's, another account's, one that was cut
off) is left out, and then the items around it lose their ids, by which the provider would
miss it.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import partial

from toolfold.runtime.clients._discoveries import discovery, found_form, is_search
from toolfold.runtime.clients._exchange import ReplyReader, Sleep
from toolfold.runtime.clients._failure import Failure
from toolfold.runtime.clients._native_blocks import native_blocks
from toolfold.runtime.clients._pairing import SentCall, SentReply, SentResult, paired
from toolfold.runtime.clients._responses_reader import ResponsesReader, content_text
from toolfold.runtime.clients.http_model import TIMEOUT_SECONDS, HttpModel, ModelApi
from toolfold.runtime.messages import UserMessage
from toolfold.runtime.model import ModelError, Request
from toolfold.strategy import FoundForm
from toolfold.tool import Json, is_array, is_object

__all__ = ["OpenAIResponses"]

_REFUSED = frozenset({400, 404, 422})
_NOT_TAKEN_BACK = ("encrypted", "'reasoning'", "not persisted")
"""What the API says of reasoning that it cannot open, or misses."""
_SEALED = "reasoning.encrypted_content"
_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
_FORM: FoundForm = "tool_search_output"
_OF_THE_ANSWER = frozenset({"id", "status"})
"""What the provider writes into an item, beside what the model said."""


class OpenAIResponses(HttpModel):
    """A model behind OpenAI's `/responses`, or a server like it.

    Args:
        model: The model's name.
        base_url: The API's address, up to and with `/v1`.
        api_key: The key; by default `OPENAI_API_KEY`, if that is set.
        headers: Headers to send along.
        timeout: How many seconds the server may be silent.
        retries: How often a request is tried again where that may help.
        context_length: The model's context window, in tokens.
        parameters: Further fields of the request, such as `reasoning` or `service_tier`. What
            they say of `include` comes on top of what is always asked for.
        sleep: What waits between attempts.

    Raises:
        ConfigError: The base URL, the key or a header cannot be used.
        MissingExtraError: The `agent` extra is not installed.

    Example:
        async with OpenAIResponses("gpt-6-sol", parameters={"reasoning": {"effort": "low"}}) as m:
            agent = Agent(m, registry)
    """

    api = ModelApi(
        title="OpenAI",
        path="/responses",
        shape="openai-responses",
        reader=ResponsesReader,
        provider_api="openai-responses",
        key_variable="OPENAI_API_KEY",
        key_header="authorization",
        key_prefix="Bearer ",
        limits=("max_output_tokens",),
    )

    def __init__(
        self,
        model: str,
        *,
        base_url: str = "https://api.openai.com/v1",
        api_key: str | None = None,
        headers: Mapping[str, str] | None = None,
        timeout: float = TIMEOUT_SECONDS,
        retries: int = 4,
        context_length: int | None = None,
        parameters: Mapping[str, Json] | None = None,
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        super().__init__(
            model,
            base_url=base_url,
            api_key=api_key,
            headers=headers,
            timeout=timeout,
            retries=retries,
            context_length=context_length,
            parameters=parameters,
            sleep=sleep,
        )
        self._refused: set[int] = set()
        self._is_sealing = True

    def _body(self, request: Request) -> dict[str, Json]:
        items = list(self._input(request))
        if not items:
            raise ModelError("there is nothing to send", hint="say something first")
        body: dict[str, Json] = {"model": self._model}
        if request.system:
            body["instructions"] = request.system
        body["input"] = items
        if request.tools:
            body["tools"] = [_lenient(tool) for tool in request.tools]
        body |= {"max_output_tokens": request.max_tokens, "store": False, "stream": True}
        return {**body, **self._parameters, **self._include()}

    def _include(self) -> dict[str, Json]:
        wanted = self._parameters.get("include")
        own = [_SEALED] if self._is_sealing else []
        also = [name for name in wanted if name not in own] if is_array(wanted) else []
        return {"include": [*own, *also]} if own or also else {}

    def _input(self, request: Request) -> Iterator[Json]:
        loaded: set[str] = set()
        for entry in paired(request.messages, _ID):
            if isinstance(entry, UserMessage):
                said = "\n\n".join(part for part in (entry.text, entry.note) if part)
                if said.strip():
                    yield {"role": "user", "content": said}
            elif isinstance(entry, SentResult):
                items = _result(entry, request)
                loaded.update(_loaded(items[0]))
                yield from items
            else:
                yield from self._said(entry, request, loaded)

    def _said(self, entry: SentReply, request: Request, loaded: Collection[str]) -> list[Json]:
        """Return a model's items: its own, where they are there and fit its calls.

        Args:
            entry: What it said.
            request: What that is sent with.
            loaded: The names of the tools whose definitions stand further up.
        """
        written = [call for call in entry.calls if not call.recovered]
        items = self._kept(entry)
        if sum(map(_is_call, items)) != len(written) or not items:
            made = (_call(call, request, loaded) for call in entry.calls)
            return [*_message(entry.text), *made]
        said: list[Json] = []
        for item in items:
            if _is_call(item):
                said.append(_call(written.pop(0), request, loaded, item))
            elif entry.text or item.get("role") != "assistant":
                said.append(item)
        said += [_call(call, request, loaded) for call in entry.calls if call.recovered]
        while said and _is_reasoning(said[-1]):  # the API refuses reasoning that led to nothing
            said.pop()
        return said

    def _kept(self, entry: SentReply) -> list[dict[str, Json]]:
        """Return the items of a reply as they go back."""
        native = native_blocks(entry.message, self.shape, self.origin)
        output = native[0].get("output") if native else None
        items = [item for item in output if is_object(item)] if is_array(output) else []
        if all(self._goes_back(item) for item in items):
            return items
        return _unsealed(items)

    def _goes_back(self, item: dict[str, Json]) -> bool:
        """Whether an item can go back: reasoning only sealed, in words, or kept over there."""
        if not _is_reasoning(item):
            return True
        kept = bool(self._parameters.get("store"))
        there = kept or bool(item.get("encrypted_content")) or bool(item.get("content"))
        return there and _seal(item) not in self._refused

    def _reader(self, request: Request) -> Callable[[], ReplyReader]:
        if request.folded is None:
            return self.api.reader
        return partial(ResponsesReader, request.folded.bridge.names.search)

    # ---- servers that want less

    def _adapted(self, body: Json, failure: Failure) -> Json | None:
        """Return the body that a server which refused this one may take, or None."""
        said = failure.body.lower()
        if failure.status not in _REFUSED:
            return None
        if any(words in said for words in _NOT_TAKEN_BACK):
            refused = {_seal(item) for item in body["input"] if _is_reasoning(item)}
            if refused:
                self._refused |= refused
                return {**body, "input": _unsealed(body["input"])}
        is_about_sealing = "encrypted" in said or re.search(r"""["'`]include\b""", said)
        if is_about_sealing and self._is_sealing:
            self._is_sealing = False
            without = {key: value for key, value in body.items() if key != "include"}
            return {**without, **self._include()}
        return None


def _lenient(tool: Json) -> Json:
    """Return a tool that says whether it is strict: unsaid, optional arguments are required."""
    if is_object(tool) and tool.get("type") == "function" and "strict" not in tool:
        return {**tool, "strict": False}
    return tool


def _is_call(item: dict[str, Json]) -> bool:
    """Whether an item is a call that we answer."""
    if item.get("type") == "tool_search_call":
        return item.get("execution") != "server"
    return item.get("type") == "function_call"


def _call(
    call: SentCall,
    request: Request,
    loaded: Collection[str],
    item: dict[str, Json] | None = None,
) -> Json:
    """Return a call as the request says it: a search in the provider's form, or a function's.

    Args:
        call: The call.
        request: What it is sent with.
        loaded: The names of the tools whose definitions stand further up.
        item: The model's own item of it, where there is one.
    """
    if found_form(request) == _FORM and is_search(request, call.name):
        own = item if item is not None and item.get("type") == "tool_search_call" else {}
        made: dict[str, Json] = {"type": "tool_search_call", "execution": "client"}
        given = {"call_id": call.id, "arguments": json.loads(call.arguments)}
        return {"status": "completed", **own, **made, **given}
    own = item if item is not None and item.get("type") == "function_call" else {}
    made = {"type": "function_call", "call_id": call.id, "name": call.name}
    placed = _placed(call.name, request, loaded, own)
    return {**placed, **made, "arguments": call.arguments}


def _placed(
    name: str, request: Request, loaded: Collection[str], own: dict[str, Json]
) -> dict[str, Json]:
    """Return what the model's item says of a call, with the namespace that it needs, or none."""
    folded = request.folded
    if folded is None:
        return own
    if not folded.is_native:  # where nothing is loaded, there is no other namespace
        return {key: value for key, value in own.items() if key != "namespace"}
    namespace = own.get("namespace") or (name if name in loaded else folded.namespace(name))
    return {**own, "namespace": namespace} if namespace else own


def _loaded(item: dict[str, Json]) -> list[str]:
    """Return the names of the tools that an item defines."""
    tools = item.get("tools") if item.get("type") == _FORM else None
    return [tool["name"] for tool in tools] if is_array(tools) else []


def _result(entry: SentResult, request: Request) -> list[Json]:
    answer = discovery(request, entry.message)
    if answer is not None and found_form(request) == _FORM:
        return answer.search_output(entry.id)
    text = entry.message.text if answer is None else answer.text
    return [{"type": "function_call_output", "call_id": entry.id, "output": text}]


def _message(text: str) -> list[Json]:
    return [{"role": "assistant", "content": text}] if text.strip() else []


def _unsealed(items: list[Json]) -> list[Json]:
    """Return items without reasoning and without the ids by which it would be missed."""
    left: list[Json] = []
    for item in items:
        if _is_reasoning(item):
            continue
        if item.get("type") == "message" and item.get("role") == "assistant":
            said = content_text(item.get("content"))
            phase = {"phase": item["phase"]} if item.get("phase") else {}
            left += [{**message, **phase} for message in _message(said)]
        else:
            left.append({key: item[key] for key in item if key not in _OF_THE_ANSWER})
    return left


def _is_reasoning(item: dict[str, Json]) -> bool:
    return item.get("type") == "reasoning"


def _seal(item: dict[str, Json]) -> int:
    """Return what tells one piece of reasoning from another."""
    return hash((str(item.get("id")), str(item.get("encrypted_content"))))
