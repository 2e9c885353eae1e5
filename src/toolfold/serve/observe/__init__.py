"""What is written down of what happens: audit, metrics, logs, the status screen."""
