"""Until every test imports it from its place."""

from genlock.sandbox.postgres import Postgres, PostgresServer

__all__ = ["Postgres", "PostgresServer"]
