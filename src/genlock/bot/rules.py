"""What the operator decides about the bot, from the settings."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, kw_only=True, slots=True)
class Package:
    """A price in stars for an amount of credits."""

    stars: int
    #: with the bonus
    credits: int
    #: percent of credits that the package has for its size
    bonus: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class ReportRules:
    """When the daily report is sent, and where."""

    hour: int
    zone: str = "UTC"
    #: a group or channel; None for the chat of each operator
    chat: int | None = None
    #: a topic of the group
    thread: int | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class BotRules:
    markup: float = 2.0
    credit_usd: float = 0.01
    #: Telegram ids of the operators
    admin_ids: frozenset[int] = frozenset()
    #: whom users write to about payments, such as @name
    support: str = ""
    #: where users' own programs reach the API; empty: nowhere
    api_url: str = ""
    packages: tuple[Package, ...] = ()
    #: how long an invoice can be paid
    invoice_hours: float = 24.0
    #: thousandths of a credit, as both rewards
    welcome: int = 0
    #: the file of the picture that a new user sees first; None: there is none
    welcome_picture: Path | None = None
    free_per_day: int = 0
    reward_inviter: int = 0
    reward_invited: int = 0
    #: days after which the inputs of finished orders are erased; 0: never
    input_days: int = 0
    running_max: int = 5
    per_minute: int = 10
    per_hour: int = 100
    uploads_per_hour: int = 60
    #: voice messages of a user in a day that become prompts at the operator's cost
    free_transcriptions_per_day: int = 0
    #: whether the bot answers its name in other chats
    inline_mode: bool = True
    #: orders a user may cancel in a day after they were submitted: the operator pays the provider for them
    late_cancels_per_day: int = 5
    #: None: no daily report
    report: ReportRules | None = None
