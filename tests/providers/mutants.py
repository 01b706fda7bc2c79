"""Real callbacks and records of every family, bent at random: cheap cases by the thousand."""

import json
from collections.abc import Iterator
from copy import deepcopy
from random import Random
from typing import Any

from genlock.sandbox.kie.faces import FACES
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
        face = next(one for one in FACES if (one.family, one.operation) == (model.family, model.operation))
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
            said += [call for _, call in face.calls(task)]
    return said


def mutants(seed: int, count: int) -> Iterator[bytes]:
    chance = Random(seed)
    originals = real_answers()
    for _ in range(count):
        said = deepcopy(chance.choice(originals))
        for _ in range(chance.choice((1, 1, 2, 3, 5))):
            said = _bend(said, chance)
        yield _spoil(json.dumps(said).encode(), chance)


def _bend(said: Any, chance: Random) -> Any:
    """Change one node somewhere inside."""
    if not isinstance(said, dict | list) or not said or chance.random() < 0.1:
        return _replacement(said, chance)
    key = chance.choice(list(said)) if isinstance(said, dict) else chance.randrange(len(said))
    if chance.random() < 0.15:
        del said[key]
    else:
        said[key] = _bend(said[key], chance)
    return said


def _replacement(said: Any, chance: Random) -> Any:
    roll = chance.random()
    if roll < 0.15:
        return json.dumps(said)
    if roll < 0.3 and isinstance(said, str):
        return said[: chance.randrange(len(said) + 1)] + chance.choice(("", "\x00", "}", '"', "é"))
    return deepcopy(chance.choice(JUNK))


def _spoil(body: bytes, chance: Random) -> bytes:
    """Now and then the bytes themselves."""
    if chance.random() > 0.1 or not body:
        return body
    place = chance.randrange(len(body))
    return chance.choice((body[:place], body[:place] + bytes([chance.randrange(256)]) + body[place + 1 :], body * 2))
