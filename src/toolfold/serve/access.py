"""The old path of `toolfold.serve.principals`."""

from toolfold._moved import moved

__getattr__ = moved(
    __name__,
    "toolfold.serve.principals",
    {
        "LOCAL": "LOCAL",
        "NOBODY": "NOBODY",
        "Doorkeeper": "TokenTable",
        "Principal": "Principal",
        "local_principal": "local_principal",
        "principal_of": "principal_of",
    },
)
