"""Faults of the fal and Replicate simulators. The values are the names in the control API.

The comments beside the values appear in the documentation.
"""

from enum import StrEnum


class Fault(StrEnum):
    # the create call, refused
    CREATE_429 = "create_429"  #: too many calls
    CREATE_NO_CREDIT = "create_no_credit"  #: the account has no credit left
    CREATE_UNKNOWN_MODEL = "create_unknown_model"  #: the model does not exist any more
    CREATE_MAINTENANCE = "create_maintenance"  #: the provider says that it is being maintained
    # the create call, outcome unknown to the client; after CREATE_500 and CREATE_502 nothing was accepted
    CREATE_500 = "create_500"  #: server error
    CREATE_502 = "create_502"  #: HTML error page of a proxy
    CREATE_CUT = "create_cut"  #: accepted; the connection breaks before the answer
    CREATE_GARBLED = "create_garbled"  #: accepted; the answer is truncated
    CREATE_NO_ID = "create_no_id"  #: accepted; the answer has no id
    CREATE_SLOW = "create_slow"  #: accepted; the answer takes long
    # the status query
    STATUS_429 = "status_429"  #: too many calls
    STATUS_404 = "status_404"  #: the record is not known yet
    STATUS_500 = "status_500"  #: server error
    STATUS_502 = "status_502"  #: HTML error page of a proxy
    STATUS_CUT = "status_cut"  #: the connection breaks before the answer
    STATUS_GARBLED = "status_garbled"  #: the answer is truncated
    STATUS_SLOW = "status_slow"  #: the answer takes long
    STATUS_WORD = "status_word"  #: an undocumented state
    # fetching the result, where that is a call of its own
    RESULT_500 = "result_500"  #: server error, though there is a result
    RESULT_502 = "result_502"  #: HTML error page of a proxy
    # cancelling
    CANCEL_LATE = "cancel_late"  #: the generation goes on although the cancellation was accepted
    CANCEL_500 = "cancel_500"  #: server error
    # the generation
    TASK_FAIL = "task_fail"  #: fails by the provider's fault; not billed
    TASK_MODERATED = "task_moderated"  #: fails for its content
    RESULT_EMPTY = "result_empty"  #: success without a result
    RESULT_BAD_URLS = "result_bad_urls"  #: success with URLs that are not HTTP
    FILE_HTML = "file_html"  #: the file is a web page
    FILE_GONE = "file_gone"  #: the file is missing (404)
    # the callback
    CALLBACK_LOST = "callback_lost"  #: never sent
    CALLBACK_TWICE = "callback_twice"  #: the same callback again
    CALLBACK_EARLY = "callback_early"  #: before the create call is answered
    CALLBACK_LATE = "callback_late"  #: long after the status query reports the end
    CALLBACK_CONTRADICTING = "callback_contradicting"  #: a second callback reports the opposite
    CALLBACK_FORGED = "callback_forged"  #: forged callbacks with another result come first
    CALLBACK_UNSIGNED = "callback_unsigned"  #: without a signature
    CALLBACK_BAD_SIGNATURE = "callback_bad_signature"  #: signed with another key
    CALLBACK_STALE = "callback_stale"  #: signed ten minutes ago
    CALLBACK_UNPARSABLE = "callback_unparsable"  #: the body is truncated
    CALLBACK_EMPTY = "callback_empty"  #: empty body
    # the keys that callbacks are verified with
    KEYS_500 = "keys_500"  #: they cannot be read
