"""`python -m vodserver.cli`."""

from vodserver.cli import main

main()
