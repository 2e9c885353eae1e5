"""The protocol's own conformance suite, against a server of ours and against the gateway."""
