"""What several processes share, over a real PostgreSQL."""
