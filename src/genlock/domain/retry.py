"""When to try again. Pure functions: the caller passes the random number."""

BACKOFF_MAX = 300.0
#: seconds between the first status queries of a task
POLL_SECONDS = 2.5
#: (age in seconds, factor): the poll interval of a task below this age is the first interval times the factor
_POLL_FACTORS = ((30.0, 1.0), (120.0, 2.0), (float("inf"), 6.0))


def backoff(attempt: int, jitter: float, *, base: float = 1.0, most: float = BACKOFF_MAX) -> float:
    """Return the seconds before attempt `attempt` + 1: doubling, capped, spread by `jitter` in [0, 1)."""
    return min(most, base * 2.0 ** min(attempt, 20)) * (0.75 + 0.5 * jitter)


def poll_delay(age: float, jitter: float, first: float = POLL_SECONDS) -> float:
    """Return the seconds until the next status query of a task `age` seconds old: short at first, longer later."""
    factor = next(factor for until, factor in _POLL_FACTORS if age < until)
    return first * factor * (0.75 + 0.5 * jitter)
