"""A gateway as one replica of several, which share a PostgreSQL."""
