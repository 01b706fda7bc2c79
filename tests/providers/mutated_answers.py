"""Randomly mutated callbacks and records of every family."""

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
    """Return the simulator's records and callbacks of every model, for running, successful and failed tasks."""
    answers: list[Any] = []
    for model in MODELS:
        endpoint = next(
            candidate
            for candidate in ENDPOINTS
            if (candidate.family, candidate.operation) == (model.family, model.operation)
        )
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
            answers += [{"code": 200, "msg": "success", "data": endpoint.record(task)}]
            answers += [call for _, call in endpoint.callbacks(task)]
    return answers


def mutated_answers(seed: int, count: int) -> Iterator[bytes]:
    rng = Random(seed)
    originals = real_answers()
    for _ in range(count):
        answer = deepcopy(rng.choice(originals))
        for _ in range(rng.choice((1, 1, 2, 3, 5))):
            answer = _mutate(answer, rng)
        yield _corrupt(json.dumps(answer).encode(), rng)


def _mutate(answer: Any, rng: Random) -> Any:
    """Change one random node."""
    if not isinstance(answer, dict | list) or not answer or rng.random() < 0.1:
        return _replacement(answer, rng)
    key = rng.choice(list(answer)) if isinstance(answer, dict) else rng.randrange(len(answer))
    if rng.random() < 0.15:
        del answer[key]
    else:
        answer[key] = _mutate(answer[key], rng)
    return answer


def _replacement(answer: Any, rng: Random) -> Any:
    roll = rng.random()
    if roll < 0.15:
        return json.dumps(answer)
    if roll < 0.3 and isinstance(answer, str):
        return answer[: rng.randrange(len(answer) + 1)] + rng.choice(("", "\x00", "}", '"', "é"))
    return deepcopy(rng.choice(JUNK))


def _corrupt(body: bytes, rng: Random) -> bytes:
    """Corrupt the bytes of one body in ten."""
    if rng.random() > 0.1 or not body:
        return body
    place = rng.randrange(len(body))
    return rng.choice((body[:place], body[:place] + bytes([rng.randrange(256)]) + body[place + 1 :], body * 2))
