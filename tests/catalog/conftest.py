"""The catalog of the package, read once."""

import pytest

from genlock.catalog import load
from genlock.domain.catalog import Catalog


@pytest.fixture(scope="session")
def catalog() -> Catalog:
    return load()
