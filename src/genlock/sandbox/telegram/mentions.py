"""Links to users in texts, which Telegram shows as mentions of the users that it finds."""

from collections.abc import Callable
from typing import Any

from genlock.sandbox.telegram.formats import Entity
from genlock.sandbox.telegram.links import user_of

FIELDS = ("entities", "caption_entities")
FindUser = Callable[[int], dict[str, Any] | None]


def with_mentions(content: dict[str, Any], find_user: FindUser) -> dict[str, Any]:
    """Return the content of a message with its mentioned users. A link to a user who is not found is left out."""
    shown = dict(content)
    for name in FIELDS:
        if name in content:
            found = [entity for entity in (_shown(entity, find_user) for entity in content[name]) if entity]
            shown |= {name: found}
            if not found:
                del shown[name]
    return shown


def _shown(entity: Entity, find_user: FindUser) -> Entity | None:
    number = entity["user"]["id"] if entity["type"] == "text_mention" else user_of(entity.get("url", ""))
    if number is None:
        return entity
    user = find_user(number)
    place = {"type": "text_mention", "offset": entity["offset"], "length": entity["length"]}
    return place | {"user": user} if user else None
