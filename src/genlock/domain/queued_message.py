"""A message to a user, outside any job, that is stored until it is sent."""

import json

from genlock.domain.value import value

#: prefix of the keys of queued messages in `kv`; the id of the account follows
QUEUED = "tell:"
#: follows the account in the key of a message about an erasure: the erasure itself removes all others
ERASED = "erased:"


@value
class QueuedMessage:
    key: str
    account_id: int
    #: in the channel's markup
    text: str
    #: seconds from now until the leader sends it
    after: float
    #: seconds that it has waited before now
    waited: float = 0.0

    def dump(self) -> str:
        """Return the value of the message's kv entry."""
        return json.dumps({"text": self.text, "after": self.after, "waited": self.waited})

    @classmethod
    def load(cls, key: str, stored: str) -> "QueuedMessage":
        """Return the message whose kv entry has this key and this value."""
        values = json.loads(stored)
        return cls(
            key=key,
            account_id=int(key.removeprefix(QUEUED).partition(":")[0]),
            text=values["text"],
            after=values["after"],
            waited=values["waited"],
        )
