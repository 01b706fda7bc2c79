"""The catalog of the package, loaded once for all tests of a process."""

from genlock.catalog import load

CATALOG = load()
