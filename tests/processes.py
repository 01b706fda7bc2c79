"""Until every test imports it from its place."""

from genlock.sandbox.processes import *  # noqa: F403
