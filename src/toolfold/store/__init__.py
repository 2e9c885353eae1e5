"""What outlives a process or is shared: where it is kept, in files or in PostgreSQL."""
