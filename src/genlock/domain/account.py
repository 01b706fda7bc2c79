"""An account: the wallet owner known to a bot of a channel by an external id."""

from genlock.domain.value import value


@value
class Account:
    id: int
    channel: str
    bot: str
    #: the id by which the channel knows the user
    external_id: str
    #: where the channel reaches the user outside a job; opaque, "" when it is not known
    address: str
