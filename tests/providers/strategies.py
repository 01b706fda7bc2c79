"""Hypothesis strategies for the bodies of callbacks, of the provider or of an attacker."""

import json
from typing import Any

from hypothesis import strategies as st

TASK = "86007839a9ca205ad3af437f7974310f"
URL = "https://tempfile.aiquickdraw.com/p/1.png"

KEYS = st.sampled_from(
    [
        *("code", "msg", "data", "taskId", "task_id", "recordId", "state", "status", "successFlag", "callbackType"),
        *("resultJson", "resultInfoJson", "response", "info", "videoInfo", "resultUrls", "result_urls", "resultUrl"),
        *("resultObject", "sunoData", "lyricsData", "text", "title", "audio_url", "audioUrl", "stream_audio_url"),
        *("video_url", "videoUrl", "result_video_url", "resultVideoUrl", "resultImageUrl", "originImageUrl", "images"),
        *("audioWavUrl", "vocal_separation_info", "vocal_url", "vocalUrl", "instruments", "resultWaterMarkUrls"),
        *("lastFrameUrl", "failCode", "failMsg", "errorCode", "errorMessage", "creditsConsumed"),
    ]
)
WORDS = st.sampled_from(
    [
        *("success", "fail", "SUCCESS", "FIRST_SUCCESS", "CALLBACK_EXCEPTION", "complete", "first", "text", "error"),
        *("0", "1", "3", "wait", "pondering", TASK, URL, "ftp://a/b", "http://[", "javascript:1", "", " ", "\x00"),
        *("\ud800", "[]", "{}", "{", "[", "null", f'["{URL}"]', f'{{"resultUrls":["{URL}"]}}', "200", "9" * 5000),
    ]
)
NUMBERS = st.sampled_from(
    [0, 1, 2, 3, 4, -1, 200, 400, 422, 429, 455, 500, 501, 0.8, -0.0, 1e308, float("inf"), float("nan"), 10**30, 2**63]
)
LEAVES = st.none() | st.booleans() | NUMBERS | WORDS | st.text(max_size=8)
#: JSON with the provider's keys and any value in any place; also as JSON in a string
NODES: st.SearchStrategy[Any] = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(KEYS | st.text(max_size=3), inner, max_size=5)
        | inner.map(json.dumps)
    ),
    max_leaves=12,
)
ENVELOPES = st.fixed_dictionaries(
    {"code": NUMBERS | LEAVES, "data": st.dictionaries(KEYS, NODES, max_size=7) | NODES},
    optional={"msg": LEAVES, "taskId": LEAVES, "task_id": LEAVES},
)
BODIES: st.SearchStrategy[bytes] = (ENVELOPES | NODES).map(lambda body: json.dumps(body).encode()) | st.binary(
    max_size=60
)
