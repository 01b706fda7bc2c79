"""What each role may do. Every page and every action names the permission that it needs."""

from enum import StrEnum

from genlock.domain.operator import OperatorRole


class Permission(StrEnum):
    VIEW = "view"  #: open the pages
    SEE_PROMPTS = "see_prompts"  #: read what users wrote and received
    HANDLE_JOBS = "handle_jobs"  #: retry, resend, cancel and refund orders
    HANDLE_USERS = "handle_users"  #: ban, write to and give free runs to users
    MOVE_CREDITS = "move_credits"  #: credit and debit users; support up to a limit
    MANAGE_MONEY = "manage_money"  #: refund payments, reconcile, check the ledger
    MANAGE_CATALOG = "manage_catalog"  #: edit models and prices
    MANAGE_CAMPAIGNS = "manage_campaigns"  #: promo codes and broadcasts
    ERASE_USERS = "erase_users"  #: erase personal data
    MANAGE_SYSTEM = "manage_system"  #: operators, sessions of others, the doctor


_SUPPORT = {
    Permission.VIEW,
    Permission.SEE_PROMPTS,
    Permission.HANDLE_JOBS,
    Permission.HANDLE_USERS,
    Permission.MOVE_CREDITS,
}


def permissions(role: OperatorRole, *, viewers_see_prompts: bool) -> frozenset[Permission]:
    match role:
        case OperatorRole.OWNER:
            return frozenset(Permission)
        case OperatorRole.SUPPORT:
            return frozenset(_SUPPORT)
        case OperatorRole.VIEWER:
            return frozenset({Permission.VIEW, *({Permission.SEE_PROMPTS} if viewers_see_prompts else ())})
