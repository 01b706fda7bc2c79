"""Kie.ai's state words and success flags: the one table that maps them to outcomes."""

from typing import Any

from genlock.domain.result import Outcome

_OUTCOMES: dict[Outcome, frozenset[str]] = {
    Outcome.SUCCESS: frozenset({"success", "succeed", "succeeded", "done", "completed", "finished"}),
    Outcome.FAILURE: frozenset(
        {
            "fail",
            "failed",
            "error",
            "canceled",
            "cancelled",
            "timeout",
            "create_task_failed",
            "generate_failed",
            "generate_audio_failed",
            "generate_wav_failed",
            "generate_mp4_failed",
            "sensitive_word_error",
        }
    ),
    Outcome.RUNNING: frozenset(
        {
            "waiting",
            "queuing",
            "queueing",
            "queued",
            "pending",
            "wait",
            "processing",
            "running",
            "in_progress",
            "generating",
            "text_success",
            "first_success",
            "callback_exception",
        }
    ),
}
_FLAGS = {0: Outcome.RUNNING, 1: Outcome.SUCCESS, 2: Outcome.FAILURE, 3: Outcome.FAILURE}
_BY_WORD = {word: outcome for outcome, words in _OUTCOMES.items() for word in words}


def read_state(word: Any) -> Outcome:
    """Normalise a state word or a `successFlag`. A word that is not in the table keeps the job running."""
    if isinstance(word, bool):
        return Outcome.UNKNOWN
    if isinstance(word, int):
        return _FLAGS.get(word, Outcome.UNKNOWN)
    if not isinstance(word, str):
        return Outcome.UNKNOWN
    text = word.strip().lower()
    if text in ("0", "1", "2", "3"):
        return _FLAGS[int(text)]
    return _BY_WORD.get(text, Outcome.UNKNOWN)
