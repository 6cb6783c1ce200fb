"""toast.gateway."""
