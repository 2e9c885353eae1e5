"""Whether a tool is still the one that a person approved."""

from toolfold.serve.trust.verdicts import Trust, fingerprint, shown

__all__ = ["Trust", "fingerprint", "shown"]
