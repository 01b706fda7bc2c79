"""The closed list of event names. Every log line of a job carries one of them."""

from enum import StrEnum


class Event(StrEnum):
    GEN_CREATE = "GEN_CREATE"  #: an order is about to be written
    JOB_CREATED = "JOB_CREATED"  #: the job and its hold are committed
    JOB_REPLAYED = "JOB_REPLAYED"  #: the same key again: the same job
    JOB_REFUSED = "JOB_REFUSED"  #: no money, or the key stands for another order; nothing was written
    SUBMIT_START = "SUBMIT_START"  #: the intent is committed, the create call goes out
    SUBMIT_OK = "SUBMIT_OK"  #: the provider gave a task id
    SUBMIT_BUSY = "SUBMIT_BUSY"  #: provably not accepted; queued again
    SUBMIT_REFUSED = "SUBMIT_REFUSED"  #: refused for good
    SUBMIT_UNKNOWN = "SUBMIT_UNKNOWN"  #: may have been accepted; waits for its callback
    CALLBACK_RECEIVED = "CALLBACK_RECEIVED"  #: stored raw, acknowledged
    CALLBACK_REFUSED = "CALLBACK_REFUSED"  #: too large, or not signed; not kept
    CALLBACK_PARSED = "CALLBACK_PARSED"  #: understood
    POLL_TICK = "POLL_TICK"  #: a status query goes out
    POLL_STATE = "POLL_STATE"  #: and its answer
    UNKNOWN_STATE = "UNKNOWN_STATE"  #: the provider used a word that is not in the table
    JOB_ENDED = "JOB_ENDED"  #: the first terminal result, committed
    RESULT_LATE = "RESULT_LATE"  #: a result after we stopped waiting
    RESULT_DUPLICATE = "RESULT_DUPLICATE"  #: known already; nothing changed
    COST_ABOVE = "COST_ABOVE"  #: alarm: the provider billed more than the price was made from
    RESULT_CONTRADICTION = "RESULT_CONTRADICTION"  #: alarm: the provider says the opposite of before
    RESULT_WRONG_TASK = (
        "RESULT_WRONG_TASK"  #: alarm: the provider called a job's address about another task; nothing changed
    )
    LOSS_RECORDED = "LOSS_RECORDED"  #: the provider billed a job that nobody pays for
    DELIVER_LOCK_WIN = "DELIVER_LOCK_WIN"  #: this instance delivers
    DELIVER_LOCK_SKIP = "DELIVER_LOCK_SKIP"  #: somebody else does, or did
    DELIVER_START = "DELIVER_START"  #: the first channel call goes out
    DELIVER_OK = "DELIVER_OK"  #: the channel confirmed every part
    DELIVER_FAIL = "DELIVER_FAIL"  #: this attempt failed
    DELIVERY_RETRY = "DELIVERY_RETRY"  #: another attempt is due later
    MARK_DELIVERED = "MARK_DELIVERED"  #: delivered and captured, committed
    RESULT_BROKEN = "RESULT_BROKEN"  #: what the provider called a result is a page or an empty file; money back
    CHAT_MOVED = "CHAT_MOVED"  #: the chat has another address; the job goes on there
    NOTICE_SENT = "NOTICE_SENT"  #: the final notice went out
    NOTICE_FAIL = "NOTICE_FAIL"  #: the final notice may not have gone out
    CHANNEL_STRANGE = "CHANNEL_STRANGE"  #: the channel refused a call in words that are not in the table, or our token
    CHANNEL_AWAY = "CHANNEL_AWAY"  #: the channel cannot be reached, or asks to wait; tried again by itself
    ORPHAN_STORED = "ORPHAN_STORED"  #: a callback whose job is not known yet
    ORPHAN_MATCHED = "ORPHAN_MATCHED"  #: its job is known now
    ORPHAN_EXPIRED = "ORPHAN_EXPIRED"  #: nobody claimed it in time; kept for the operator
    CALLBACK_UNREADABLE = "CALLBACK_UNREADABLE"  #: could not be parsed; kept for the operator
    LEASE_LOST = "LEASE_LOST"  #: a write was refused: somebody else holds the job now
    PEER_DEAD = "PEER_DEAD"  #: a silent instance's work was made due
    POISON_SUSPECTED = (
        "POISON_SUSPECTED"  #: a job, or a lane, that was in hand at several crash_count of instances is tried alone
    )
    STAGE_ERROR = "STAGE_ERROR"  #: a stage failed in a way nobody foresaw; retried, then parked
    ATTENTION = "ATTENTION"  #: an operator should look
    OPERATOR = "OPERATOR"  #: somebody retried, resent or cancelled
    STORE_RETRY = "STORE_RETRY"  #: the database failed in a passing way; the statement is tried again
    UPDATE_RECEIVED = "UPDATE_RECEIVED"  #: an update of the chat is kept, and acknowledged after this
    UPDATE_REFUSED = "UPDATE_REFUSED"  #: not from the chat, too large, or no update; not kept
    UPDATE_DONE = "UPDATE_DONE"  #: its handler came to an end
    UPDATE_FAIL = "UPDATE_FAIL"  #: its handler failed; tried again later
    UPDATE_DEAD = "UPDATE_DEAD"  #: its handler failed too often; kept for the operator
    LOCK_ACTIVE = "LOCK_ACTIVE"  #: this instance took the active role
    LOCK_PASSIVE = "LOCK_PASSIVE"  #: this instance lost or gave up the active role
    POLLING = "POLLING"  #: this instance asks the chat for updates
    POLL_CONFLICT = "POLL_CONFLICT"  #: somebody else asks with the same token
    WEBHOOK_SET = "WEBHOOK_SET"  #: the chat was told where to bring updates
    WEBHOOK_REMOVED = "WEBHOOK_REMOVED"  #: the chat was told that we come for them
    FORGOTTEN = "FORGOTTEN"  #: old rows were removed
    ALARM = "ALARM"  #: something is wrong that an operator should know of
    RECOVERED = "RECOVERED"  #: and it is over
    SETTING_UNKNOWN = "SETTING_UNKNOWN"  #: a variable looks like a setting and is none; tells what was meant
    READY = "READY"  #: this instance works
    STOPPING = "STOPPING"  #: this instance takes nothing new
    STOPPED = "STOPPED"  #: and has handed over what was left
