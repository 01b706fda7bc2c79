"""An account: the wallet owner known to a bot of a channel by an external id."""

from genlock.domain.value import value


@value
class Account:
    id: int
    channel: str
    bot: str
    #: the id that the channel knows the user by
    external_id: str
    #: where the channel reaches the user outside a job; opaque, "" when it is not known
    address: str
