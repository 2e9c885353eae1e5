"""What several processes share, in PostgreSQL."""
