"""The one way of a call, whatever door it came through."""
