"""What `make bench` runs; nothing here is installed."""
