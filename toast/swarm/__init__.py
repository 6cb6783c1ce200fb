"""toast.swarm."""
