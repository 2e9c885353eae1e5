"""How `toolfold serve` ends: nothing that it started, nor what that started, is left running."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.served import Served, gone
from support.servers.place import SECONDS, Place, prepared

pytestmark = pytest.mark.slow


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    with prepared(tmp_path) as made:
        yield made


def test_a_schema_of_40_levels_holds_up_neither_a_neighbour_nor_the_end(place: Place) -> None:
    place.add("bomb", "bomb").add("good")
    with Served(place) as served:
        served.greet()
        served.wait_for(r"server bomb: ready")
        served.wait_for(r"server good: ready")
        served.begin("bomb__boom", "x")

        assert served.call("good__echo", "y") == "good:y"
        served.begin("bomb__boom", "x")
        seconds = served.end("SIGTERM")

        assert seconds < 10
    gone(place)


HOWS = ["closed", "SIGTERM", "SIGINT"]


@pytest.mark.parametrize("how", HOWS)
def test_servers_that_will_not_end_are_ended_with_all_they_started(place: Place, how: str) -> None:
    place.add("good").add("stubborn", "stubborn").add("floods").add("exits", "exit")
    place.serve(drain=0.1)
    with Served(place) as served:
        served.greet()
        for server in ("good", "stubborn"):
            served.call(f"{server}__child")
        # One that was started again is no less ended than the first.
        pid = served.call("stubborn__pid")
        served.begin("stubborn__die")
        while (now := served.call("stubborn__pid")) == pid or not now.isdecimal():
            pass
        served.call("stubborn__child")
        served.begin("good__hang")
        served.begin("floods__flood", n=1_000_000)
        assert len(place.left()) >= 6

        seconds = served.end(how)

        assert served.process.returncode == 0
        assert seconds < 5
        gone(place)


@pytest.mark.parametrize("how", HOWS)
def test_it_ends_at_once_though_it_has_hardly_begun(place: Place, how: str) -> None:
    place.add("good").add("hangs", "hang", "stubborn")
    with Served(place) as served:
        end = time.monotonic() + SECONDS
        while len(place.left()) < 3:  # its servers are there before it can answer
            assert time.monotonic() < end
        served.end(how)
        gone(place)


def test_whoever_asks_twice_leaves_nothing_either(place: Place) -> None:
    place.add("stubborn", "stubborn").add("hangs", "hang", "stubborn")
    with Served(place) as served:
        served.greet()
        pid = served.call("stubborn__pid")
        served.begin("stubborn__die")
        while (now := served.call("stubborn__pid")) == pid or not now.isdecimal():
            pass
        served.process.send_signal(signal.SIGINT)
        time.sleep(0.05)  # two signals at once are one
        served.end("SIGINT")
        gone(place)


def test_killed_itself_it_leaves_nothing_either(place: Place) -> None:
    place.add("good").add("stubborn", "stubborn").add("hangs", "hang", "stubborn")
    with Served(place) as served:
        served.greet()
        served.call("stubborn__child")

        served.end("SIGKILL")

        assert served.process.returncode == -signal.SIGKILL
        gone(place)


@pytest.mark.parametrize("how", ["SIGTERM", "SIGINT", "closed"])
def test_a_client_that_reads_no_more_does_not_keep_it(place: Place, how: str) -> None:
    place.add("good")
    with Served(place) as served:
        served.greet()
        for _ in range(4):
            served.begin("good__echo", "x" * 200_000)
        end = time.monotonic() + SECONDS
        while place.ran()["echo " + "x" * 200_000] < 4:
            assert time.monotonic() < end
            time.sleep(0.02)
        assert served.end(how) < 5
        gone(place)


@pytest.mark.parametrize("how", ["SIGTERM", "SIGINT"])
def test_over_http_too(place: Place, how: str) -> None:
    place.add("good").add("stubborn", "stubborn").add("hangs", "hang", "stubborn")
    with Served(place, "--http", "127.0.0.1:0") as served:
        served.wait_for(r"listening on \S+")
        served.wait_for("server stubborn: ready")
        assert len(place.left()) == 4

        assert served.end(how) < 5
        gone(place)
