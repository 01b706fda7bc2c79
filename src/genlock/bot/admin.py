"""For operators, in the chat."""

from genlock.bot.buttons import Pressed
from genlock.bot.desk import Desk
from genlock.bot.visit import Visit


class Admin:
    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    def may(self, visit: Visit) -> bool:
        return int(visit.profile.outside_id) in self._desk.rules.admin_ids

    async def command(self, visit: Visit, line: str) -> None: ...

    async def pressed(self, visit: Visit, press: Pressed) -> None: ...
