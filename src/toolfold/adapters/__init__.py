"""Agent frameworks: their tools folded, in their own idioms; each imported only when asked for."""
