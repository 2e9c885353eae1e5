"""What stands between HTTP and the gateway."""
