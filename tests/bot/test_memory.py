"""What users write is not kept in memory for longer than it is needed."""

import json
import tracemalloc
from collections.abc import Callable
from dataclasses import replace

import pytest

from genlock.bot.screen_context import text_of
from genlock.bot.storefront.spelling import sound
from tests.rows import JOB

KEPT_BYTES_MAX = 100_000


def _sound_of_long_word(number: int) -> None:
    sound(f"кошка{number}" * 500)


def _text_of_long_input(number: int) -> None:
    text_of(replace(JOB, input=json.dumps({"prompt": f"{number}" * 5_000})), "prompt")


@pytest.mark.parametrize("use", [_sound_of_long_word, _text_of_long_input])
def test_long_texts_of_users_are_not_kept(use: Callable[[int], None]) -> None:
    use(-1)
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        for number in range(100, 200):
            use(number)
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert after - before < KEPT_BYTES_MAX
