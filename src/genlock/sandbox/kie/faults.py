"""Faults of the Kie.ai simulator: switched on, with a probability, for the next order, or for one task.

The values of `Fault` are the names in the control API; the comments beside them appear in the documentation.
"""

from collections.abc import Iterable
from enum import StrEnum


class Fault(StrEnum):
    # the create call, refused
    CREATE_429 = "create_429"  #: too many calls, as a code in the JSON envelope
    CREATE_HTTP_429 = "create_http_429"  #: too many calls, as an HTTP status with an HTML page
    CREATE_433 = "create_433"  #: the key's own cap is reached
    CREATE_455 = "create_455"  #: maintenance
    CREATE_500 = "create_500"  #: server error as a code in the JSON envelope; nothing was accepted
    CREATE_HTTP_500 = "create_http_500"  #: server error as an HTTP status
    CREATE_502 = "create_502"  #: HTML error page of a proxy
    CREATE_PAUSED = "create_paused"  #: the model is paused
    CREATE_MODERATED = "create_moderated"  #: the prompt is refused at once
    CREDITS_AS_500 = "credits_as_500"  #: a balance that is too low is reported with code 500
    # the create call, accepted
    CREATE_CUT = "create_cut"  #: the connection breaks before the answer
    CREATE_GARBLED = "create_garbled"  #: the answer is truncated
    CREATE_NO_ID = "create_no_id"  #: success without a task id
    CREATE_SLOW = "create_slow"  #: the answer takes long
    # the status query
    STATUS_429 = "status_429"  #: too many calls
    STATUS_455 = "status_455"  #: maintenance
    STATUS_500 = "status_500"  #: server error as a code in the JSON envelope
    STATUS_502 = "status_502"  #: HTML error page of a proxy
    STATUS_CUT = "status_cut"  #: the connection breaks before the answer
    STATUS_GARBLED = "status_garbled"  #: the answer is truncated
    STATUS_SLOW = "status_slow"  #: the answer takes long
    STATUS_WORD = "status_word"  #: an undocumented state
    STATUS_NULL = "status_null"  #: the record does not exist yet
    # the task
    TASK_FAIL = "task_fail"  #: fails, credits refunded
    TASK_UPSTREAM = "task_upstream"  #: fails with 400 and "try again later": not the input's fault
    TASK_MODERATED = "task_moderated"  #: fails for its content
    RESULT_EMPTY = "result_empty"  #: success without a result
    RESULT_BROKEN = "result_broken"  #: success with a result that cannot be parsed
    RESULT_BAD_URLS = "result_foreign"  #: success with URLs that are not HTTP
    FILE_HTML = "file_html"  #: the file is a web page
    FILE_GONE = "file_gone"  #: the file is missing (404)
    # the callback
    CALLBACK_LOST = "callback_lost"  #: never sent
    CALLBACK_TWICE = "callback_twice"  #: the same callback again
    CALLBACK_EARLY = "callback_early"  #: before the create call is answered
    CALLBACK_LATE = "callback_late"  #: long after the status query reports the end
    CALLBACK_CONTRADICTING = "callback_contradicting"  #: a second callback reports the opposite
    CALLBACK_FORGED = "callback_forged"  #: forged callbacks with another result come first
    CALLBACK_BAD_SIGNATURE = "callback_bad_signature"  #: signed with another key
    CALLBACK_STALE = "callback_stale"  #: signed ten minutes ago
    CALLBACK_UNPARSABLE = "callback_unparsable"  #: the body is truncated
    CALLBACK_EMPTY = "callback_empty"  #: empty body
    CALLBACK_DISORDERED = "callback_disordered"  #: the stages come in the wrong order


def read_faults(names: Iterable[str]) -> list[Fault]:
    """Return faults by name. Raises ValueError for an unknown name."""
    return [Fault(name) for name in names]
