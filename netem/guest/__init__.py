"""A user-mode Linux guest: a kernel of its own as an ordinary process, with the host's files."""
