"""The inspector in a real browser: `make browser`."""
