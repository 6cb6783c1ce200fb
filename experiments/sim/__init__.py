"""The simulator: a scenario in virtual time, with the policies of the real viewer.

Pure but for `engine.py`. What is decided is decided by `toast.policy`; here is only what surrounds
a viewer: links, the swarm's protocol, the tracker, the server.
"""
