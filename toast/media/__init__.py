"""toast.media."""
