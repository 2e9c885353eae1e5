"""A page in the browser over a catalog: what it costs, what a search finds, what a model sees."""
