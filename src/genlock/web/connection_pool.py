"""The memory that all connections of the process hold together, and which of them are closed to make room.

Until an endpoint has checked a secret, the sender of a request is unauthenticated. All unauthenticated senders share a
number of connections and a number of bytes. When the connections run out, the oldest one is closed that has sent no
whole request; when the bytes run out, the one that holds most. So slow, idle and large senders give way, and a sender
with a secret always finds room. Whole requests wait for their answer, in a number of connections of their own.
One client with a key, who may be hostile all the same, has a number of connections of its own.
"""

from collections import Counter
from typing import Protocol

from genlock.web.admission import KnownSecrets, UnknownSenders

#: connections with an unanswered request that one client with a key may have: more than its waiting requests
SENDER_CONNECTIONS_MAX = 700
#: the same for all clients with a key: one gets at most half of the free ones, but always the minimum
CLIENT_CONNECTIONS_MAX, SENDER_CONNECTIONS_MIN = 6_000, 20


class Connection(Protocol):
    @property
    def is_answering(self) -> bool:
        """Whether a whole request waits for its answer."""

    def discard(self) -> None:
        """Close the connection at once and free what it holds."""


class ConnectionPool:
    """The connections of unauthenticated senders, oldest first, with the bytes that each of them holds."""

    #: connections that may wait for the answer to a whole request, as a multiple of those that may still be sending one
    ANSWERING_SHARE = 2

    def __init__(self, connections_max: int, bytes_max: int) -> None:
        self._connections_max = connections_max
        self._bytes_max = bytes_max
        self._held: dict[Connection, int] = {}
        #: those without a whole request
        self._idle: dict[Connection, None] = {}
        self._held_total = 0
        #: who sends the request that a connection answers, and how many connections each sender has
        self._senders: dict[Connection, str] = {}
        self._connections: Counter[str] = Counter()
        self.unknown = UnknownSenders()
        #: requests for `/health` have places of their own: in an outage, others may hold theirs for long
        self.probes = UnknownSenders()
        self.secrets = KnownSecrets()

    def update(self, connection: Connection, held: int) -> None:
        """Record the bytes that a connection holds, and close others if all of them are too many."""
        self._leave_sender(connection)
        self._held_total += held - self._held.get(connection, 0)
        self._held[connection] = held
        if connection.is_answering:
            self._idle.pop(connection, None)
        else:
            self._idle[connection] = None
        if len(self._idle) > self._connections_max:
            self._close(next(iter(self._idle)))
        if len(self._held) > self._connections_max * (1 + self.ANSWERING_SHARE):
            self._close(next(iter(self._held)))
        if self._held_total > self._bytes_max:
            self._close(max(self._held, key=self._held.__getitem__))

    def _close(self, connection: Connection) -> None:
        self.remove(connection)
        connection.discard()

    def authenticate(self, connection: Connection, sender: str | None) -> bool:
        """Count a connection as its sender's until its request is answered; False if the sender has too many."""
        if sender is not None and self._senders.get(connection) != sender:
            if self._connections[sender] >= self._room_of(sender):
                return False
            self._leave_sender(connection)
            self._senders[connection] = sender
            self._connections[sender] += 1
        self._stop_holding(connection)
        return True

    def _room_of(self, sender: str) -> int:
        """Return how many connections a sender may have: each takes tens of kilobytes, and clients may be many."""
        half_of_the_rest = (CLIENT_CONNECTIONS_MAX - (len(self._senders) - self._connections[sender])) // 2
        return min(SENDER_CONNECTIONS_MAX, max(SENDER_CONNECTIONS_MIN, half_of_the_rest))

    def remove(self, connection: Connection) -> None:
        """Stop counting a connection: it ended."""
        self._stop_holding(connection)
        self._leave_sender(connection)

    def _stop_holding(self, connection: Connection) -> None:
        self._held_total -= self._held.pop(connection, 0)
        self._idle.pop(connection, None)

    def _leave_sender(self, connection: Connection) -> None:
        sender = self._senders.pop(connection, None)
        if sender is not None:
            self._connections[sender] -= 1
            if not self._connections[sender]:
                del self._connections[sender]
