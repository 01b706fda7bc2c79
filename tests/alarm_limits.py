"""Figures at the limit of every alarm: those that raise it, and the worst ones that do not."""

from collections.abc import Mapping

#: name of the alarm, figures that raise it, figures that do not
LIMITS: list[tuple[str, Mapping[str, float], Mapping[str, float]]] = [
    ("orphan_spike", {"orphans_fresh": 20}, {"orphans_fresh": 19, "orphans": 1000}),
    ("undelivered", {"undelivered": 1, "undelivered_age": 301}, {"undelivered": 9, "undelivered_age": 300}),
    ("ledger_mismatch", {"ledger_violations": 1}, {"ledger_violations": 0}),
    ("ledger_unchecked", {"ledger_check_age": 1801}, {"ledger_check_age": 1800}),
    ("provider_failing", {"lately_failed": 5, "lately_ended": 10}, {"lately_failed": 5, "lately_ended": 11}),
    ("provider_failing", {"lately_failed": 5, "lately_ended": 5}, {"lately_failed": 4, "lately_ended": 4}),
    ("provider_failing", {"queued_age": 301}, {"queued_age": 300}),
    ("provider_paused", {"breakers_open": 1}, {"breakers_open": 0}),
    ("provider_silent", {"providers_silent": 1}, {"providers_silent": 0}),
    ("updates_dead", {"updates_dead": 1}, {"updates_dead": 0}),
    ("refund_open", {"refunds_open": 1, "refund_age": 901}, {"refunds_open": 2, "refund_age": 900}),
    ("cost_above_price", {"costs_above_price": 1, "cost_above_price_job": 7}, {"costs_above_price": 0}),
    ("external_refund", {"external_refunds": 1}, {"external_refunds": 0}),
    ("bot_refused", {"bot_refused": 1}, {"bot_refused": 0}),
]
