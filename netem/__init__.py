"""Networks worth measuring in: topologies as data, and what on this machine can emulate them."""
