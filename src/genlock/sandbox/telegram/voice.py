"""Voice messages that users record: sound in any format becomes OGG with Opus, as Telegram's clients record it."""

import io
import math
from array import array
from collections.abc import Iterable
from functools import cache

import av

RATE = 48_000
FRAME_SAMPLES = 960
SECONDS_MAX = 60
SAMPLE_RATE = 16_000
#: syllables of the sample voice: frequencies of the two formants in Hz, seconds, pitch in Hz
SYLLABLES = (
    ((730, 1090), 0.26, 142),
    ((530, 1840), 0.20, 156),
    ((270, 2290), 0.22, 150),
    ((570, 840), 0.30, 134),
    ((730, 1090), 0.18, 128),
    ((440, 1020), 0.24, 122),
    ((530, 1840), 0.38, 108),
)
PAUSE_SECONDS = 0.05
FORMANT_WIDTH = 150.0


class NotSound(ValueError):
    """The uploaded recording has no sound that can be decoded."""


def as_voice(recording: bytes, language: str = "") -> bytes:
    """Convert a recording, of at most SECONDS_MAX; the file names the language of its speaker. Raises NotSound."""
    try:
        with av.open(io.BytesIO(recording), "r") as opened:
            if not opened.streams.audio:
                raise NotSound("the recording has no sound")
            return _encoded(_decoded(opened), language)
    except (av.error.FFmpegError, OSError) as error:
        raise NotSound("the recording cannot be decoded") from error


def _decoded(opened: "av.container.InputContainer") -> Iterable[av.AudioFrame]:
    samples = 0
    for frame in opened.decode(audio=0):
        yield frame
        samples += frame.samples
        if samples > SECONDS_MAX * frame.sample_rate:
            return


@cache
def sample_voice(language: str = "") -> bytes:
    """Return a voice message for browsers without a microphone: two seconds of a synthetic voice without words."""
    samples = array("h")
    for formants, seconds, pitch in SYLLABLES:
        samples.extend(_syllable(formants, seconds, pitch))
        samples.extend([0] * round(PAUSE_SECONDS * SAMPLE_RATE))
    frame = av.AudioFrame(format="s16", layout="mono", samples=len(samples))
    frame.planes[0].update(samples.tobytes())
    frame.sample_rate, frame.pts = SAMPLE_RATE, 0
    return _encoded([frame], language)


def _syllable(formants: tuple[int, int], seconds: float, pitch: float) -> Iterable[int]:
    """Add the harmonics of a pitch, those near a formant the loudest, as the mouth does."""
    count = round(seconds * SAMPLE_RATE)
    harmonics = []
    for number in range(1, int(3000 // pitch)):
        distance = min(abs(number * pitch - formant) for formant in formants)
        harmonics.append((number, (0.06 + math.exp(-((distance / FORMANT_WIDTH) ** 2))) / number**0.5))
    for place in range(count):
        turn = math.tau * pitch * (1 - 0.05 * place / count) * place / SAMPLE_RATE
        loudness = math.sin(math.pi * place / count) ** 0.6
        yield int(5200 * loudness * sum(weight * math.sin(number * turn) for number, weight in harmonics))


def _encoded(frames: Iterable[av.AudioFrame], language: str) -> bytes:
    file = io.BytesIO()
    resampler = av.AudioResampler(format="s16", layout="mono", rate=RATE, frame_size=FRAME_SAMPLES)
    with av.open(file, "w", format="ogg") as ogg:
        stream = ogg.add_stream("libopus", rate=RATE, layout="mono")
        if language:
            stream.metadata["language"] = language
        encoded = 0
        for frame in (*frames, None):
            for piece in resampler.resample(frame):
                piece.pts = encoded
                encoded += piece.samples
                ogg.mux(stream.encode(piece))
        if not encoded:
            raise NotSound("the recording is empty")
        ogg.mux(stream.encode(None))
    return file.getvalue()
