"""Revenue, cost and margin, as the lines that `/admin` and the daily report share."""

from genlock.domain.margin import Money
from genlock.i18n.translator import Html, Translator


def margin_lines(t: Translator, credits_: int, money: Money) -> list[Html]:
    """Return the lines with revenue, cost and margin; the share of the margin is a dash without revenue."""
    revenue, cost, margin = t.dollars_of_sum(money.revenue, money.cost, money.margin)
    share = "—" if money.margin_share is None else t.percent(money.margin_share)
    return [
        t.html("admin.revenue", revenue=t.credits(credits_), usd=revenue),
        t.html("admin.margin", cost=cost, margin=margin, share=share),
    ]
