"""What `make live` runs; nothing here is installed."""
