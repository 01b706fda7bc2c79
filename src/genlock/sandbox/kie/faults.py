"""What goes wrong at the simulated Kie.ai: by switch, by probability, for the next orders or for one task."""

from collections import deque
from collections.abc import Iterable
from enum import StrEnum
from random import Random


class Fault(StrEnum):
    # the create call, refused
    CREATE_429 = "create_429"  #: too many calls, said in the envelope
    CREATE_HTTP_429 = "create_http_429"  #: the same as an HTTP status with a page
    CREATE_433 = "create_433"  #: the key's own cap is reached
    CREATE_455 = "create_455"  #: maintenance
    CREATE_500 = "create_500"  #: a hiccup, said in the envelope; nothing was accepted, but who knows
    CREATE_HTTP_500 = "create_http_500"  #: the same as an HTTP status
    CREATE_502 = "create_502"  #: a page of the proxy in front
    CREATE_PAUSED = "create_paused"  #: the model is paused
    CREATE_MODERATED = "create_moderated"  #: the prompt is refused at once
    CREDITS_AS_500 = "credits_as_500"  #: a balance that is too low is told with code 500
    # the create call, accepted
    CREATE_CUT = "create_cut"  #: the connection breaks before the answer
    CREATE_GARBLED = "create_garbled"  #: half an answer
    CREATE_NO_ID = "create_no_id"  #: success without a task id
    CREATE_SLOW = "create_slow"  #: the answer takes long
    # the status query
    STATUS_429 = "status_429"  #: too many calls
    STATUS_455 = "status_455"  #: maintenance
    STATUS_500 = "status_500"  #: a hiccup, said in the envelope
    STATUS_502 = "status_502"  #: a page of the proxy in front
    STATUS_CUT = "status_cut"  #: the connection breaks before the answer
    STATUS_GARBLED = "status_garbled"  #: half an answer
    STATUS_SLOW = "status_slow"  #: the answer takes long
    STATUS_WORD = "status_word"  #: a state that nobody has heard of
    STATUS_NULL = "status_null"  #: the record is not there yet
    # the task
    TASK_FAIL = "task_fail"  #: fails, credits back
    TASK_UPSTREAM = "task_upstream"  #: fails with 400 and "try again later": not the input's fault
    TASK_MODERATED = "task_moderated"  #: fails for its content
    RESULT_EMPTY = "result_empty"  #: success, and nothing to show
    RESULT_BROKEN = "result_broken"  #: success, and a result that cannot be parsed
    RESULT_BAD_URLS = "result_foreign"  #: success, and addresses that are not on the web
    FILE_HTML = "file_html"  #: the file is a web page
    FILE_GONE = "file_gone"  #: the file is not there
    # the callback
    CALLBACK_LOST = "callback_lost"  #: never sent
    CALLBACK_TWICE = "callback_twice"  #: the same one again
    CALLBACK_EARLY = "callback_early"  #: before the create call is answered
    CALLBACK_LATE = "callback_late"  #: long after the record says the end
    CALLBACK_CONTRADICTING = "callback_contradicting"  #: a second one says the opposite
    CALLBACK_FORGED = "callback_forged"  #: a stranger's come first, with a result of their own
    CALLBACK_BAD_SIGNATURE = "callback_bad_signature"  #: signed with another key
    CALLBACK_STALE = "callback_stale"  #: signed ten minutes ago
    CALLBACK_UNPARSABLE = "callback_unparsable"  #: half a body
    CALLBACK_EMPTY = "callback_empty"  #: no body at all
    CALLBACK_DISORDERED = "callback_disordered"  #: the stages come in the wrong order


class Faults:
    """Decides what goes wrong, from a seed."""

    def __init__(self, rng: Random) -> None:
        self._rng = rng
        self._on: set[Fault] = set()
        self._probabilities: dict[Fault, float] = {}
        self._coming: deque[frozenset[Fault]] = deque()

    def switch(self, *faults: Fault, on: bool = True) -> None:
        """For everything from now on."""
        self._on = self._on | set(faults) if on else self._on - set(faults)

    def set_probability(self, fault: Fault, probability: float) -> None:
        self._probabilities[fault] = probability

    def order(self, *faults: Fault) -> None:
        """For the next order that nothing has been set for yet; none at all is also something."""
        self._coming.append(frozenset(faults))

    def clear(self) -> None:
        self._on.clear()
        self._probabilities.clear()
        self._coming.clear()

    def draw(self) -> set[Fault]:
        """What goes wrong with one order."""
        return self._common("") | set(self._coming.popleft() if self._coming else ())

    def draw_status(self, of_task: set[Fault]) -> set[Fault]:
        """What goes wrong with one status query. What was set for the task alone happens once."""
        mine = {fault for fault in of_task if fault.startswith("status_")}
        of_task -= mine
        return mine | self._common("status_")

    def _common(self, prefix: str) -> set[Fault]:
        faults = self._on | {
            fault for fault, probability in self._probabilities.items() if self._rng.random() < probability
        }
        return {fault for fault in faults if fault.startswith(prefix)}

    def as_json(self) -> dict[str, object]:
        return {
            "on": sorted(self._on),
            "chances": dict(self._probabilities),
            "coming": [sorted(faults) for faults in self._coming],
        }


def read_faults(words: Iterable[str]) -> list[Fault]:
    """Faults by name. Raises ValueError for a word that is none."""
    return [Fault(word) for word in words]
