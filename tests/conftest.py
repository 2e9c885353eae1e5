"""For all tests: Hypothesis' profiles, signals as they should be, and a state folder of their own.

A profile is the same few examples everywhere, or many, by chance.
"""

import os
import signal

import pytest
from hypothesis import HealthCheck, settings

_ALWAYS = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])

settings.register_profile("toolfold", _ALWAYS, derandomize=True, max_examples=25)
settings.register_profile("thorough", _ALWAYS, max_examples=500)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "toolfold"))

# A shell starts what runs in its background with SIGINT ignored, and so would all that tests start.
signal.signal(signal.SIGINT, signal.default_int_handler)
if hasattr(signal, "SIGHUP"):
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


@pytest.fixture(scope="session", autouse=True)
def _state_folder(tmp_path_factory: pytest.TempPathFactory) -> None:  # pyright: ignore[reportUnusedFunction]
    """Keep what doors remember between runs away from the user's own."""
    os.environ["XDG_STATE_HOME"] = str(tmp_path_factory.mktemp("state"))
