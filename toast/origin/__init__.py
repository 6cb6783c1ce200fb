"""toast.origin."""
