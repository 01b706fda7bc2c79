"""A message to a user, outside any job, that is stored until it is sent."""

import json

from genlock.domain.value import value

#: beginning of the keys of such messages among the kv entries of the installation; then follows the account
QUEUED = "tell:"
#: follows there, if the message tells the user of an erasure: the erasure removes the other ones
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
