"""Models as data: `load` reads and checks the files in `data/` and the operator's overlay."""

from genlock.catalog.loader import load as load

__all__ = ["load"]
