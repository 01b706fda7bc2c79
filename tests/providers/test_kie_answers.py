"""The table of answers: every documented code and text, and undocumented ones."""

import pytest

from genlock.providers.kie.answers import AnswerKind, classify_answer, failure_code

PAUSED = "This interface is temporarily paused."
UNSUPPORTED = "The model name you specified is not supported. Please verify your input and use one of the supported"
VOICE = "Invalid voice parameter: rachel. Please refer to the documentation for the list of supported voices."


@pytest.mark.parametrize(
    ("code", "text", "name"),
    [
        (400, "taskId parameter is required", "bad_input"),
        (401, "You do not have access permissions", "provider_key"),
        (402, "Insufficient Credits", "no_provider_credits"),
        (500, "Credits insufficient", "no_provider_credits"),
        (404, "", "model_unavailable"),
        (413, "", "bad_input"),
        (422, UNSUPPORTED, "model_unavailable"),
        (422, VOICE, "bad_input"),
        (422, "voiceId cannot be empty", "bad_input"),
        (422, "Please enter callBackUrl.", "bad_input"),
        (451, "", "file_unreachable"),
        (500, "This field is required", "bad_input"),
        (500, "prompt is required", "bad_input"),
        (500, "prompt or media is required", "bad_input"),
        (500, "Please fill in the text prompt or image, video, or audio", "bad_input"),
        (500, PAUSED, "model_unavailable"),
        (505, "", "model_unavailable"),
        (400, "Your prompt was flagged by Website as violating content policies.", "moderation"),
        (422, "InputImageSensitiveContentDetected", "moderation"),
    ],
)
def test_a_final_refusal(code: int, text: str, name: str) -> None:
    row = classify_answer(code, text)
    assert (row.kind, row.error_code) == (AnswerKind.REFUSED, name)


@pytest.mark.parametrize(
    ("code", "text"),
    [(429, ""), (433, ""), (455, ""), (500, "Your call frequency is too high. Please try again later.")],
)
def test_a_temporary_refusal(code: int, text: str) -> None:
    row = classify_answer(code, text)
    assert row.kind is AnswerKind.LATER
    assert row.after > 0


@pytest.mark.parametrize(
    ("code", "text"),
    [
        (500, "Server exception, please try again later"),
        (500, "Server exception, please try again later or contact customer service"),
        (500, ""),
        (501, ""),
        (502, "Bad Gateway"),
        (503, ""),
        (504, "Gateway Time-out"),
        (520, ""),
        (408, ""),
        (302, ""),
        (200, ""),
        (0, ""),
        (None, ""),
        (999, "what"),
    ],
)
def test_an_order_with_any_other_answer_may_have_been_accepted(code: int | None, text: str) -> None:
    assert classify_answer(code, text).kind is AnswerKind.UNKNOWN


@pytest.mark.parametrize(
    ("code", "text", "name"),
    [
        (500, "Internal Error, Please try again later.", "provider_failed"),
        (400, "upstream busy, please try again later", "provider_failed"),
        (400, "Your prompt was flagged by Website as violating content policies.", "moderation"),
        (None, "SENSITIVE_WORD_ERROR", "moderation"),
        (400, "resource download failed", "file_unreachable"),
        (400, "File type not supported", "file_unreachable"),
        (422, "duration must be 5", "bad_input"),
        (408, "", "provider_timeout"),
        (None, "GENERATION_FAILED", "provider_failed"),
        (531, "", "provider_failed"),
    ],
)
def test_the_error_code_of_a_failed_task(code: int | None, text: str, name: str) -> None:
    assert failure_code(code, text) == name
