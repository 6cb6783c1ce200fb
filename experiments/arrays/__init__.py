"""The disk-array laboratory: disks, loads, a simulator, the figures of chapters 3 and 4."""
