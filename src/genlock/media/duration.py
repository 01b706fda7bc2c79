"""Measure how long a video or audio file plays from its own bytes: headers and senders may state less.

The duration sets the price, so a file is measured only if every part of it is understood, and the longest of several
readings counts. Any other file has no duration here and costs as much as the longest one allowed.
"""

import math
from collections.abc import Callable
from typing import IO

from genlock.domain.media_format import Format
from genlock.media import flac, matroska, mp3, mp4_duration, ogg, sniff, wave
from genlock.media.budget import Budget, NotMeasured
from genlock.media.mapped_file import Content, mapped

#: no file within Telegram's size limit plays longer
SECONDS_MAX = 86_400.0

_READERS: dict[Format, Callable[[Content, Budget], float]] = {
    **dict.fromkeys((sniff.MP4, sniff.MOV, sniff.M4A), mp4_duration.read_duration),
    sniff.WAV: wave.read_duration,
    sniff.OGG: ogg.read_duration,
    sniff.WEBM: matroska.read_duration,
    sniff.MP3: mp3.read_duration,
    sniff.AAC: mp3.read_duration,
    sniff.FLAC: flac.read_duration,
}


def file_duration(file: IO[bytes]) -> float | None:
    """Return the duration of a file on disk in seconds; None if it cannot be determined. Raises TooComplex."""
    with mapped(file) as content:
        return duration(content)


def duration(content: Content) -> float | None:
    """Return the duration in seconds; None if it cannot be determined. Raises TooComplex."""
    found = sniff.likely_format(content[:12])
    reader = _READERS.get(found) if found else None
    try:
        seconds = reader(content, Budget()) if reader else math.nan
    except NotMeasured:
        return None
    return seconds if 0 < seconds <= SECONDS_MAX else None
