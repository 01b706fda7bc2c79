"""The simulated Kie as the tests of the bot and of the API use it: it refuses no call for its number."""

from contextlib import AbstractAsyncContextManager

from genlock.sandbox.kie.simulator import KieSimulator, running_kie
from tests.packaged import CATALOG


def unlimited_kie(speed: float) -> AbstractAsyncContextManager[KieSimulator]:
    many = (10_000, 1.0)
    return running_kie(catalog=CATALOG, speed=speed, create_limit=many, status_limit=many, same_media=True)
