"""One hypothesis profile for all tests: the same examples everywhere, no deadlines."""

from hypothesis import HealthCheck, settings

settings.register_profile(
    "toolfold",
    deadline=None,
    derandomize=True,
    max_examples=60,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("toolfold")
