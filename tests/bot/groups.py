"""A group with the bot in it."""

from genlock.sandbox.telegram.chats import Message
from genlock.sandbox.telegram.groups import Group
from tests.bot.world import BotWorld, ChatUser

NAME = "@sandbox_bot"


def seen(world: BotWorld, group: Group) -> list[Message]:
    return [message for message in group.messages if message.sender == world.caller.bot.id]


async def friends(world: BotWorld) -> tuple[ChatUser, ChatUser, Group]:
    ann, bob = await world.add_user("Ann"), await world.add_user("Bob")
    return ann, bob, world.telegram.group("Friends", [ann.client, bob.client])
