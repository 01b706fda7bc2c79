"""What the operator decides about the chat product, from the settings."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class Package:
    """So many credits for so many stars."""

    stars: int
    credits: int


@dataclass(frozen=True, kw_only=True, slots=True)
class BotRules:
    markup: float = 2.0
    credit_usd: float = 0.01
    admin_ids: frozenset[int] = frozenset()
    #: where people turn to, such as @name
    support: str = ""
    packages: tuple[Package, ...] = ()
    #: thousandths of a credit
    welcome: int = 0
    free_per_day: int = 0
    reward_inviter: int = 0
    reward_invited: int = 0
    running_max: int = 5
    per_minute: int = 10
    per_hour: int = 100
    uploads_per_hour: int = 60
    #: cancels a day after the provider was asked: what it bills for them is the operator's loss
    late_cancels_per_day: int = 5
