"""Servers behind the replicas, which write down all that they run."""
