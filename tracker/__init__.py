"""The tracker: who is in which swarm, and for our own viewers also where in the film they are.

`messages`, `codec` and `state` are pure; `connections` and `http` alone touch sockets and clocks.
"""
