"""When to try again. Pure: the caller brings the random number."""

BACKOFF_MAX = 300.0


def backoff(attempt: int, jitter: float, *, base: float = 1.0, most: float = BACKOFF_MAX) -> float:
    """Seconds before try number `attempt` + 1: doubling, capped, spread by `jitter` in [0, 1)."""
    return min(most, base * 2.0 ** min(attempt, 20)) * (0.75 + 0.5 * jitter)


def poll_delay(age: float, jitter: float) -> float:
    """Seconds until the next status query of a task `age` seconds old: often at first, gently later."""
    if age < 30:
        pause = 5.0
    elif age < 120:
        pause = 10.0
    else:
        pause = 30.0
    return pause * (0.75 + 0.5 * jitter)
