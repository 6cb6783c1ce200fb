"""Leaves that viewer and servers must agree on to the byte: units, ranges, geometry, time maps.

Nothing here imports another room of the project.
"""
