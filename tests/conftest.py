"""For all tests: Hypothesis' profiles, and a state folder that is nobody's own.

A profile is the same few examples everywhere, or many, by chance.
"""

import os

import pytest
from hypothesis import HealthCheck, settings

_ALWAYS = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])

settings.register_profile("toolfold", _ALWAYS, derandomize=True, max_examples=25)
settings.register_profile("thorough", _ALWAYS, max_examples=500)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "toolfold"))


@pytest.fixture(scope="session", autouse=True)
def _state_folder(tmp_path_factory: pytest.TempPathFactory) -> None:  # pyright: ignore[reportUnusedFunction]
    """Keep what doors remember between runs away from the user's own."""
    os.environ["XDG_STATE_HOME"] = str(tmp_path_factory.mktemp("state"))
