"""The APIs that the proxy speaks, one class each."""
