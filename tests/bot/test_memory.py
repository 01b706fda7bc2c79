"""What users write is not kept in memory for longer than it is needed."""

import json
import tracemalloc
from dataclasses import replace

from genlock.bot.screen_context import text_of
from tests.rows import JOB

KEPT_BYTES_MAX = 100_000


def test_long_inputs_that_are_shown_are_not_kept() -> None:
    text_of(JOB, "prompt")
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        for number in range(100, 200):
            text_of(replace(JOB, input=json.dumps({"prompt": f"{number}" * 5_000})), "prompt")
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert after - before < KEPT_BYTES_MAX
