"""`toolfold.store.entries`: what tenants see, and many keys at once."""

from __future__ import annotations

from pathlib import Path

import pytest

from toolfold.store.entries import MemoryEntries, SqliteEntries
from toolfold.store.store import Entries


@pytest.fixture(params=["memory", "file"])
def entries(request: pytest.FixtureRequest, tmp_path: Path) -> Entries:
    """Entries of both kinds."""
    return MemoryEntries() if request.param == "memory" else SqliteEntries(tmp_path / "e.sqlite")


def test_many_keys_are_asked_for_at_once(entries: Entries) -> None:
    keys = [str(number) for number in range(2_000)]
    for key in keys[::400]:
        entries.put(key, key.encode())
    assert entries.get_all(keys) == {key: key.encode() for key in keys[::400]}
    entries.forget("400")
    assert entries.get_all(["400", "800"]) == {"800": b"800"}


def test_a_tenant_sees_no_others_entries(entries: Entries) -> None:
    entries.put("k", b"nobody's")
    entries.of("one").put("k", b"of one")
    two = entries.of("two")
    assert two.get_all(["k", "3:one:k"]) == {}
    two.put("k", b"of two")
    two.forget("k")
    assert entries.of("one").get("k") == b"of one"
    assert entries.of("default").get("k") == b"nobody's"
