"""toast.policy."""
