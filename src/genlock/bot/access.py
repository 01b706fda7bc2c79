"""Who may use the bot now: not banned users, and during maintenance only operators."""

from dataclasses import dataclass, field
from time import monotonic

from genlock.bot.admin.campaigns import MAINTENANCE
from genlock.bot.bundle import BotBundle
from genlock.domain.profile import Profile
from genlock.i18n.translator import Translator
from genlock.ports import Database

#: how long the maintenance flag is cached
MAINTENANCE_SECONDS = 2.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Denial:
    """Why a user may not use the bot: the name of the reason, and the values of its texts."""

    reason: str
    values: dict[str, str] = field(default_factory=dict)


class Access:
    def __init__(self, bundle: BotBundle, store: Database) -> None:
        self._bundle = bundle
        self._store = store
        self._maintenance: tuple[float, str | None] = (0.0, None)

    async def denial(self, user_id: int, profile: Profile | None, t: Translator) -> Denial | None:
        """Return why this user may not use the bot; None if they may. Operators always may."""
        rules = self._bundle.rules
        if user_id in rules.admin_ids:
            return None
        if profile is not None and profile.banned_at is not None:
            support = rules.support or t.plain("paysupport.support_default")
            return Denial(reason="banned", values={"support": support})
        if (why := await self._maintenance_text()) is not None:
            return Denial(reason="maintenance", values={"text": why or t.plain("misc.maintenance_default")})
        return None

    async def _maintenance_text(self) -> str | None:
        """Return the operator's text while maintenance is on; None while it is off."""
        until, text = self._maintenance
        if monotonic() >= until:
            entry = await self._store.kv_get(MAINTENANCE, self._bundle.id)
            text = entry.value if entry else None
            self._maintenance = (monotonic() + MAINTENANCE_SECONDS, text)
        return text
