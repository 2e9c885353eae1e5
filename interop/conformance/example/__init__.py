"""A server that has everything the conformance suite asks for, in every revision.

It is written with the protocol's Python library alone and knows nothing of the gateway.
"""
