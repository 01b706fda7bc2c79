"""Bot API methods for the topics of a forum."""

from typing import Any

from genlock.sandbox.telegram.api_call import CallArguments, bad_request
from genlock.sandbox.telegram.chats import Chat, Topic
from genlock.sandbox.telegram.messages import Method
from genlock.sandbox.telegram.state import TelegramState

NAME_MAX = 128
COLOURS = (7322096, 16766590, 13338331, 9367192, 16749490, 16478047)


async def create_topic(state: TelegramState, arguments: CallArguments) -> Any:
    chat, name = _forum(state, arguments, "create a topic"), arguments.text("name").strip()[:NAME_MAX]
    colour, emoji = arguments.number("icon_color", COLOURS[0]), arguments.text("icon_custom_emoji_id")
    if not name:
        raise bad_request("name must be non-empty")
    if colour not in COLOURS:
        raise bad_request("invalid icon color specified")
    fields = {"name": name, "icon_color": colour} | ({"icon_custom_emoji_id": emoji} if emoji else {})
    message = state.post(chat, state.bot_id, {"forum_topic_created": fields}, silent=True)
    message.thread = message.id
    chat.topics[message.id] = Topic(name=name, icon=emoji)
    return fields | {"message_thread_id": message.id}


async def edit_topic(state: TelegramState, arguments: CallArguments) -> bool:
    """Change the name, the icon or both. Changing nothing is no error here."""
    topic = _topic(state, arguments, "edit the topic")
    topic.name = arguments.text("name")[:NAME_MAX] or topic.name
    topic.icon = arguments.text("icon_custom_emoji_id") if "icon_custom_emoji_id" in arguments.values else topic.icon
    return True


async def delete_topic(state: TelegramState, arguments: CallArguments) -> bool:
    _topic(state, arguments, "delete the topic")
    chat, number = state.chat(arguments), arguments.number("message_thread_id")
    del chat.topics[number]
    for message in [candidate for candidate in chat.messages.values() if candidate.thread == number]:
        state.remove(message)
    return True


async def unpin_topic(state: TelegramState, arguments: CallArguments) -> bool:
    _topic(state, arguments, "pin or unpin the topic")
    _unpin(state.chat(arguments), arguments.number("message_thread_id"))
    return True


async def edit_general(state: TelegramState, arguments: CallArguments) -> bool:
    general, name = _forum(state, arguments, "edit the topic").general, arguments.text("name")[:NAME_MAX]
    if not name or name == general.name:
        raise bad_request("TOPIC_NOT_MODIFIED")
    general.name = name
    return True


async def unpin_general(state: TelegramState, arguments: CallArguments) -> bool:
    _unpin(_forum(state, arguments, "pin or unpin the topic"), None)
    return True


def switch(*, general: bool, field: str, on: bool) -> Method:
    """Return the method that closes, reopens, hides or shows a topic. A hidden one is closed, a reopened one shown."""

    async def change(state: TelegramState, arguments: CallArguments) -> bool:
        what = "close or open the topic"
        topic = _forum(state, arguments, what).general if general else _topic(state, arguments, what)
        if getattr(topic, field) is on:
            raise bad_request("TOPIC_NOT_MODIFIED")
        setattr(topic, field, on)
        if field == "hidden" and on:
            topic.closed = True
        if field == "closed" and not on:
            topic.hidden = False
        return True

    return change


def _unpin(chat: Chat, thread: int | None) -> None:
    chat.pinned = [number for number in chat.pinned if chat.messages[number].thread != thread]


def _forum(state: TelegramState, arguments: CallArguments, what: str) -> Chat:
    """Return the forum. Raises unless the bot may do this in it."""
    chat = state.writable(state.chat(arguments))
    if not chat.forum:
        raise bad_request("the chat is not a forum")
    if chat.bot_status != "administrator":
        raise bad_request(f"not enough rights to {what}")
    return chat


def _topic(state: TelegramState, arguments: CallArguments, what: str) -> Topic:
    topic = _forum(state, arguments, what).topics.get(arguments.number("message_thread_id"))
    if topic is None:
        raise bad_request("TOPIC_ID_INVALID")
    return topic


METHODS: dict[str, Method] = {
    "createForumTopic": create_topic,
    "editForumTopic": edit_topic,
    "closeForumTopic": switch(general=False, field="closed", on=True),
    "reopenForumTopic": switch(general=False, field="closed", on=False),
    "deleteForumTopic": delete_topic,
    "unpinAllForumTopicMessages": unpin_topic,
    "editGeneralForumTopic": edit_general,
    "closeGeneralForumTopic": switch(general=True, field="closed", on=True),
    "reopenGeneralForumTopic": switch(general=True, field="closed", on=False),
    "hideGeneralForumTopic": switch(general=True, field="hidden", on=True),
    "unhideGeneralForumTopic": switch(general=True, field="hidden", on=False),
    "unpinAllGeneralForumTopicMessages": unpin_general,
}
