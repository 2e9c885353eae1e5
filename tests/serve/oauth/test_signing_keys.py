"""The issuer's keys: found, kept, rotated, and gone on with while the issuer is away."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from typing import Any

import pytest

from support.issuers import Issuer, issuer, private_key, public_jwk
from support.running import wait
from toolfold._json_values import Json
from toolfold.serve.oauth.issuer_documents import LIMIT, IssuerAwayError, IssuerDocuments
from toolfold.serve.oauth.signing_keys import FRESH, SigningKeys


@pytest.fixture
def made() -> Iterator[Issuer]:
    with issuer() as found:
        yield found


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


class Published:
    """What an issuer publishes, without a network."""

    def __init__(self, *names: str) -> None:
        self.names = names
        self.is_away = False
        self.readings = 0
        self.gate = asyncio.Event()
        self.gate.set()

    async def read(self) -> list[Json]:
        self.readings += 1
        await self.gate.wait()
        if self.is_away:
            raise IssuerAwayError("it answers with 503")
        return [public_jwk(private_key("ES256", ord(n)), kid=n) for n in self.names]


def test_a_key_that_is_rotated_out_is_refused_and_the_new_one_taken_without_a_restart(
    made: Issuer,
) -> None:
    async def main() -> None:
        clock = Clock()
        keys = SigningKeys(IssuerDocuments(made.url).keys, again=10, clock=clock)
        assert await keys.find("one", "ES256") is not None

        made.publish("two")
        clock.now = 11
        assert await keys.find("two", "ES256") is not None
        assert await keys.find("one", "ES256") is None

    wait(main())


def test_an_unknown_key_has_the_issuer_asked_once_in_a_while_and_a_known_one_never() -> None:
    async def main() -> None:
        clock, published = Clock(), Published("a")
        keys = SigningKeys(published.read, again=10, clock=clock)
        for number in range(50):
            assert await keys.find(f"guess-{number}", "ES256") is None
            assert await keys.find("a", "ES256") is not None
        assert published.readings == 1

        clock.now = 10
        for number in range(50):
            assert await keys.find(f"guess-{number}", "ES256") is None
        assert published.readings == 2

    wait(main())


def test_a_key_that_is_gone_counts_no_longer_than_the_keys_are_fresh() -> None:
    async def main() -> None:
        clock, published = Clock(), Published("a", "b")
        keys = SigningKeys(published.read, clock=clock)
        assert await keys.find("a", "ES256") is not None

        published.names = ("b",)
        clock.now = FRESH - 1
        assert await keys.find("a", "ES256") is not None
        clock.now = FRESH
        assert await keys.find("a", "ES256") is None

    wait(main())


def test_however_many_come_at_once_the_issuer_is_asked_once() -> None:
    async def main() -> None:
        published = Published("a")
        published.gate.clear()
        keys = SigningKeys(published.read)
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(keys.find("a", "ES256")) for _ in range(20)]
            await asyncio.sleep(0)
            published.gate.set()
        assert all(task.result() is not None for task in tasks)
        assert published.readings == 1

    wait(main())


def test_while_the_issuer_is_away_the_last_keys_count_and_that_is_said_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)

    async def main() -> None:
        clock, published = Clock(), Published("a")
        keys = SigningKeys(published.read, again=10, clock=clock)
        assert await keys.find("a", "ES256") is not None

        published.is_away = True
        for _ in range(5):
            clock.now += FRESH
            assert await keys.find("a", "ES256") is not None
            with pytest.raises(IssuerAwayError):
                await keys.find("b", "ES256")
        assert caplog.text.count("cannot be read") == 1
        assert "it answers with 503; the 1 that were read last go on counting" in caplog.text

        published.is_away = False
        clock.now += FRESH
        assert await keys.find("a", "ES256") is not None
        assert await keys.find("b", "ES256") is None
        assert caplog.text.count("can be read again") == 1

    wait(main())


def test_nobody_waits_for_an_issuer_that_was_away_already() -> None:
    async def main() -> None:
        clock, published = Clock(), Published("a")
        keys = SigningKeys(published.read, again=10, clock=clock)
        await keys.find("a", "ES256")
        published.is_away = True
        clock.now = FRESH
        await keys.find("a", "ES256")

        published.gate.clear()
        clock.now += 10
        for _ in range(5):
            assert await asyncio.wait_for(keys.find("a", "ES256"), 1) is not None
        published.is_away = False
        published.names = ("b",)
        published.gate.set()
        assert await keys.find("b", "ES256") is not None

    wait(main())


def test_keys_that_an_issuer_never_gave_let_nobody_in(made: Issuer) -> None:
    made.is_away = True
    keys = SigningKeys(IssuerDocuments(made.url).keys)

    with pytest.raises(IssuerAwayError):
        wait(keys.find("one", "ES256"))


def test_an_issuer_below_a_path_is_found_and_one_with_openid_too() -> None:
    with issuer("/realms/one") as made:
        assert wait(IssuerDocuments(made.url).keys()) == made.keys
        made.asked.clear()
        made.path = "/elsewhere"
        with pytest.raises(IssuerAwayError):
            wait(IssuerDocuments(made.url).keys())
        assert made.asked == [
            "/.well-known/oauth-authorization-server/realms/one",
            "/realms/one/.well-known/openid-configuration",
            "/.well-known/openid-configuration/realms/one",
        ]


def test_keys_can_be_named_and_then_no_metadata_are_asked_for(made: Issuer) -> None:
    keys = IssuerDocuments("https://login.example", f"{made.url}/keys").keys

    assert wait(keys()) == made.keys
    assert made.asked == ["/keys"]


@pytest.mark.parametrize(
    "metadata",
    [
        {"issuer": "https://login.example"},
        {"issuer": None},
        {"jwks_uri": None},
        {"jwks_uri": "file:///etc/passwd"},
        {"jwks_uri": "http://keys.example/keys"},
        {"jwks_uri": "//keys.example"},
    ],
)
def test_metadata_of_another_issuer_or_with_an_odd_address_are_not_taken(
    made: Issuer, metadata: dict[str, Any]
) -> None:
    made.metadata = metadata

    with pytest.raises(IssuerAwayError):
        wait(IssuerDocuments(made.url).keys())
    assert "/keys" not in made.asked


@pytest.mark.parametrize("keys", [[], {"a": 1}, None, "x" * LIMIT])
def test_a_key_set_that_is_none_or_too_long_is_not_taken(made: Issuer, keys: Any) -> None:
    made.keys = keys

    with pytest.raises(IssuerAwayError):
        wait(IssuerDocuments(made.url).keys())


def test_an_issuer_that_nobody_answers_for_is_away() -> None:
    with issuer() as gone:
        pass

    with pytest.raises(IssuerAwayError):
        wait(IssuerDocuments(gone.url).keys())
