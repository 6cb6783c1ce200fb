"""The tracker: who is in which swarm, and for our own viewers also where in the film they are.

Everything is pure but `server`, `connections`, `udp` and `http`, which touch sockets and clocks.
"""
