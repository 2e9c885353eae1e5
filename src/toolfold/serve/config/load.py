"""The old path of `toolfold.config`."""

from toolfold._moved import moved

__getattr__ = moved(
    __name__,
    "toolfold.config",
    {
        "GatewayConfig": "GatewayConfig",
        "find_config": "find_config",
        "load_gateway": "load_gateway",
        "missing_hint": "missing_hint",
        "user_config": "user_config",
    },
)
