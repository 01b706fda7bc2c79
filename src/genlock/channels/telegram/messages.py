"""The values of outgoing messages, under the name by which the bot imports them."""

from genlock.ports import Button, FileLabel, OutgoingMessage

__all__ = ["Button", "FileLabel", "OutgoingMessage"]
