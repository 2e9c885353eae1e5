"""Hypothesis profiles for all tests: the same few examples everywhere, or many, by chance."""

import os

from hypothesis import HealthCheck, settings

_ALWAYS = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])

settings.register_profile("toolfold", _ALWAYS, derandomize=True, max_examples=25)
settings.register_profile("thorough", _ALWAYS, max_examples=500)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "toolfold"))
