"""The configuration read again while the gateway runs."""
