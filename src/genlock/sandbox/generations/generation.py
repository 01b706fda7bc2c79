"""Models of a simulated provider, and one generation that runs there."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from time import time
from typing import Any

from genlock.domain.catalog import Output
from genlock.sandbox.generations.faults import Fault


@dataclass(frozen=True, kw_only=True)
class SimulatedInput:
    """One input that a model takes."""

    name: str
    required: bool = False
    choices: tuple[Any, ...] = ()
    #: the value of an order that does not have it; None: there is none
    default: Any = None


@dataclass(frozen=True, kw_only=True)
class SimulatedModel:
    """A model as the provider's schema describes it."""

    id: str
    output: Output
    inputs: tuple[SimulatedInput, ...] = ()
    title: str = ""
    expected_seconds: float = 20.0
    price_usd: float = 0.01
    #: the price that is published, and what it is for; an empty unit: none is published
    unit_usd: float = 0.0
    unit: str = ""
    #: the input that says how many results there are, if there is one
    count_input: str | None = None
    #: whether the result is one object rather than a list of them
    single: bool = False

    @property
    def writes(self) -> bool:
        """Whether it is a language model: it makes a text of a prompt."""
        return self.output is Output.TEXT and any(input_.name == "prompt" and input_.required for input_ in self.inputs)

    def problems(self, values: Mapping[str, Any]) -> list[tuple[str, str]]:
        """Return each input that is missing or wrong, with what is wrong about it. Unknown inputs are ignored."""
        found = []
        for input_ in self.inputs:
            value = values.get(input_.name)
            if value is None:
                if input_.required:
                    found.append((input_.name, "missing"))
            elif input_.choices and value not in input_.choices:
                found.append((input_.name, "not one of " + ", ".join(map(repr, input_.choices))))
        return found

    def count(self, values: Mapping[str, Any]) -> int:
        wanted = values.get(self.count_input) if self.count_input else 1
        return wanted if isinstance(wanted, int) and 1 <= wanted <= 10 else 1


@dataclass(kw_only=True)
class Generation:
    id: str
    model: SimulatedModel
    values: dict[str, Any]
    webhook_url: str | None
    faults: set[Fault]
    created: float  #: epoch
    real_seconds: float  #: how long it runs in this run of the simulator
    started: float | None = None
    ended: float | None = None
    cancelled: bool = False
    problems: list[tuple[str, str]] = field(default_factory=list)
    #: URLs, or the texts of a text model
    results: list[str] = field(default_factory=list)
    #: the provider removed input and output
    removed: bool = False
    has_ended: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def failure(self) -> Fault | None:
        """The fault by which this ends without a result."""
        return next((fault for fault in (Fault.TASK_FAIL, Fault.TASK_MODERATED) if fault in self.faults), None)

    @property
    def succeeded(self) -> bool:
        return self.ended is not None and not self.cancelled and self.failure is None and not self.problems

    @property
    def billed(self) -> bool:
        return self.ended is not None and not self.cancelled and self.failure is not Fault.TASK_FAIL

    @property
    def reported_results(self) -> list[str]:
        """The results as the provider reports them."""
        if Fault.RESULT_EMPTY in self.faults:
            return []
        if Fault.RESULT_BAD_URLS in self.faults:
            return ["ftp://files.invalid/a.png", "javascript:alert(1)", "not an address"]
        return self.results

    def end(self) -> None:
        self.started = self.started or time()
        self.ended = time()
        self.has_ended.set()
