"""`python -m genlock`."""

from genlock.cli import main

main()
