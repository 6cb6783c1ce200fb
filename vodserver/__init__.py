"""vodserver."""
