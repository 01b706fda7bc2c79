"""Real callbacks and records of every family, bent at random: cheap cases by the thousand."""

import json
from collections.abc import Iterator
from copy import deepcopy
from random import Random
from typing import Any

from genlock.sandbox.kie.endpoints import ENDPOINTS
from genlock.sandbox.kie.faults import Fault
from genlock.sandbox.kie.task import Task
from tests.providers.models import MODELS

JUNK: tuple[Any, ...] = (
    *(None, True, False, 0, 1, 3, -1, 200, 501, 10**40, 1e308, float("nan")),
    *("", " ", "success", "fail", "SUCCESS", "1", "complete", "[]", "{}", "{", "null", "\x00", "\ud800", "a" * 10_000),
    *("https://a.example/x.png", "http://[::1", "data:,x"),
    *([], {}, [[]], [None], [{}], {"": None}, {"taskId": 1}, ["https://a.example/1", 5], {"data": {"data": []}}),
)


def real_answers() -> list[Any]:
    """What the simulator says, of each model, running and ended, well and badly."""
    said = []
    for model in MODELS:
        face = next(one for one in ENDPOINTS if (one.family, one.operation) == (model.family, model.operation))
        for faults in (set(), {Fault.TASK_FAIL}, {Fault.TASK_MODERATED}, {Fault.RESULT_EMPTY}):
            results = [f"https://files.example/{number}.png" for number in range(model.results({}))]
            task = Task(
                id="ab" * 16,
                model=model,
                values={"prompt": "a fox"},
                callback_url="https://bot.example/x",
                faults=faults,
                price=800,
                seconds=10.0,
                real_seconds=10.0,
                created=1.0,
                states=("waiting",),
                ended=11.0,
                results=results,
            )
            said += [{"code": 200, "msg": "success", "data": face.record(task)}]
            said += [call for _, call in face.callbacks(task)]
    return said


def mutants(seed: int, count: int) -> Iterator[bytes]:
    rng = Random(seed)
    originals = real_answers()
    for _ in range(count):
        said = deepcopy(rng.choice(originals))
        for _ in range(rng.choice((1, 1, 2, 3, 5))):
            said = _bend(said, rng)
        yield _spoil(json.dumps(said).encode(), rng)


def _bend(said: Any, rng: Random) -> Any:
    """Change one node somewhere inside."""
    if not isinstance(said, dict | list) or not said or rng.random() < 0.1:
        return _replacement(said, rng)
    key = rng.choice(list(said)) if isinstance(said, dict) else rng.randrange(len(said))
    if rng.random() < 0.15:
        del said[key]
    else:
        said[key] = _bend(said[key], rng)
    return said


def _replacement(said: Any, rng: Random) -> Any:
    roll = rng.random()
    if roll < 0.15:
        return json.dumps(said)
    if roll < 0.3 and isinstance(said, str):
        return said[: rng.randrange(len(said) + 1)] + rng.choice(("", "\x00", "}", '"', "é"))
    return deepcopy(rng.choice(JUNK))


def _spoil(body: bytes, rng: Random) -> bytes:
    """Now and then the bytes themselves."""
    if rng.random() > 0.1 or not body:
        return body
    place = rng.randrange(len(body))
    return rng.choice((body[:place], body[:place] + bytes([rng.randrange(256)]) + body[place + 1 :], body * 2))
