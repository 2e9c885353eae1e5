"""What holds of every turn, whatever its calls do: one result and one record for each."""

from __future__ import annotations

import asyncio
from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from toolfold import Settings, Tool, fold
from toolfold.dispatch.records import CallRecord, SearchRecord, Silent
from toolfold.runtime import Activity, Batch, Call, Hook, Output, PendingCall, Refusal, Registry

KINDS = (
    "fine", "plain", "raises", "exits", "cancels", "refuses", "hangs", "fails", "leaves",
    "unknown", "tool_search",
)  # fmt: skip
ARGUMENTS = {"tool_search": '{"query": "fine"}', "fine": "{}", "plain": "{}"}
HOOKS = ("lets", "refuses", "answers", "raises", "rubbish", "rebuilds", "withholds", "leaves")


RAISED: dict[str, type[BaseException]] = {
    "raises": ValueError,
    "exits": SystemExit,
    "cancels": asyncio.CancelledError,
}
RETURNED = {"refuses": Refusal("not I"), "fails": Output("bad", is_error=True)}


class Ledger(Silent):
    """Counts what is told of each call."""

    def __init__(self) -> None:
        self.started_at: Counter[int] = Counter()
        self.ended_at: Counter[int] = Counter()

    def started(self, record: CallRecord) -> None:
        assert not self.ended_at[record.position]
        self.started_at[record.position] += 1

    def progressed(self, record: CallRecord, message: str, fraction: float | None) -> None:
        assert self.started_at[record.position]
        assert not self.ended_at[record.position]

    def called(self, record: CallRecord) -> None:
        assert record.started == bool(self.started_at[record.position])
        self.ended_at[record.position] += 1

    def answered(self, record: SearchRecord) -> None:
        self.ended_at[record.position] += 1


class Whim(Hook):
    """Does to each call what is said for it."""

    def __init__(self, whims: list[str], registry: Registry) -> None:
        self._whims = whims
        self._registry = registry

    def before_call(self, call: PendingCall) -> PendingCall | Refusal | Output | None:
        whim = self._whims[call.position]
        if whim == "leaves":
            self._registry.remove(call.tool.name)
        if whim == "raises":
            raise KeyError("hook")
        if whim == "rubbish":
            return 3  # type: ignore[return-value]
        said = {"refuses": Refusal("no"), "answers": Output("mine")}
        rebuilt = PendingCall(call.tool, call.arguments) if whim == "rebuilds" else None
        return said.get(whim, rebuilt)

    def after_call(self, call: PendingCall, output: Output) -> Output | None:
        if self._whims[call.position] == "withholds":
            raise KeyError("hook")
        return None


def registry_of(ran: Counter[int], *, parallel: bool) -> Registry:
    registry = Registry()

    async def work(call: PendingCall) -> object:
        ran[call.position] += 1
        name = call.tool.name
        if name in RAISED:
            raise RAISED[name]
        if name == "hangs":
            await asyncio.Event().wait()
        if name == "leaves":
            registry.remove("fine")
        await asyncio.sleep(0)
        return RETURNED.get(name, {"done": True})

    for name in KINDS[:-2]:
        if name != "plain":
            registry.add(Tool(name, f"It {name}."), work, timeout=0.01, parallel=parallel)

    @registry.tool(parallel=parallel)
    def plain() -> str:
        "Answer from a thread."
        return "plain"

    return registry


@given(
    turn=st.lists(st.tuples(st.sampled_from(KINDS), st.sampled_from(HOOKS)), max_size=6),
    parallel=st.booleans(),
    folded=st.booleans(),
    gone=st.sets(st.sampled_from(KINDS[:3])),
    cut_off=st.booleans(),
    cancelled_after=st.none() | st.integers(0, 12),
)
def test_every_call_of_a_turn_has_one_result_and_one_record_and_runs_at_most_once(
    turn: list[tuple[str, str]],
    parallel: bool,
    folded: bool,
    gone: set[str],
    cut_off: bool,
    cancelled_after: int | None,
) -> None:
    ran: Counter[int] = Counter()
    ledger = Ledger()
    heard: list[Activity] = []

    async def main() -> Batch:
        registry = registry_of(ran, parallel=parallel)
        batch = Batch(
            [Call(kind, ARGUMENTS.get(kind, "")) for kind, _ in turn],
            fold(registry.tools(), settings=Settings(enabled="on" if folded else "off")),
            registry,
            hooks=[Whim([whim for _, whim in turn], registry)],
            observers=[ledger],
            listener=heard.append,
            parallel=2,
            cut_off=cut_off,
        )
        for name in gone:
            registry.remove(name)
        task = asyncio.create_task(batch.run())
        for _ in range(cancelled_after or 0):
            await asyncio.sleep(0)
        if cancelled_after is not None:
            task.cancel()
        await asyncio.wait([task])
        assert task.cancelled() or task.exception() is None
        assert asyncio.all_tasks() == {asyncio.current_task()}
        return batch

    batch = asyncio.run(main())

    assert len(batch.results) == len(turn)
    assert not ran or max(ran.values()) == 1
    assert all(count == 1 for count in ledger.ended_at.values())
    assert set(ledger.started_at) <= set(ledger.ended_at)
    if cancelled_after is None:
        assert set(ledger.ended_at) == set(range(len(turn)))
    began = [a.place for a in heard if a.kind == "started"]
    ended = [a.place for a in heard if a.kind in ("finished", "refused")]
    assert set(began) <= set(ended)
    assert len(ended) == len(set(ended))
