"""The simulator's busiest modules as machine code: built by mypyc when asked, never needed.

Beside the sources lies nothing of it: a build has a folder of its own, named after exactly the
sources, the Python and the mypyc that it was made of, and a process that simulates loads from there
what others load from the checkout. Without a build all is plain Python, with the same results.
"""
