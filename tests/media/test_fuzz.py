"""Every parser of media gets mutated files: it answers or refuses within bounds, and never measures too little.

`pytest tests/media/test_fuzz.py --fuzz 1000000` takes some ten minutes.
"""

import io
import time
import warnings
from collections.abc import Callable, Iterable
from contextlib import suppress

import av
import pytest

from genlock.media.budget import TooComplex
from genlock.media.duration import duration
from genlock.media.photo import DECODERS, NotUsableAsPhoto, fit_photo, photo_fits
from genlock.media.sniff import NotMedia, recognise
from tests.media.every_reader import read_media
from tests.media.forgeries import played_seconds
from tests.media.mutations import image_seeds, media_seeds, mutated

pytestmark = pytest.mark.timeout(1800)  # for all cases of a test together, with many cases asked for
#: CPU seconds that no file may take; the files here are small
CPU_SECONDS_MAX = 5.0
SLICES = 4


def each_within_bounds(cases: Iterable[bytes], read: Callable[[bytes], object]) -> None:
    for content in cases:
        started = time.process_time()
        read(content)
        assert time.process_time() - started < CPU_SECONDS_MAX, content[:100]


def read_image(content: bytes) -> None:
    photo_fits(content)
    with suppress(NotMedia, NotUsableAsPhoto):
        found = recognise(content)
        if found in DECODERS:
            fit_photo(io.BytesIO(content), 10**9, found)


@pytest.mark.parametrize("part", range(SLICES))
def test_mutated_media_is_measured_or_refused(fuzz_cases: int, first_seed: int, part: int) -> None:
    each_within_bounds(mutated(media_seeds(), first_seed + part, fuzz_cases // 2 // SLICES), read_media)


def test_mutated_images_are_converted_or_refused(fuzz_cases: int, first_seed: int) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Pillow warns of damaged metadata
        each_within_bounds(mutated(image_seeds(), first_seed + 1, fuzz_cases // 20), read_image)


def test_no_mutated_file_is_measured_shorter_than_it_plays(fuzz_cases: int, first_seed: int) -> None:
    shorter = []
    for content in mutated(media_seeds(), first_seed + 7, fuzz_cases // 40):
        found = None
        with suppress(TooComplex):
            found = duration(content)
        if found is None:
            continue
        try:
            played = played_seconds(content)
        except (av.FFmpegError, OverflowError, ValueError):
            continue  # it does not play at all
        if found < played - 0.5:
            shorter.append((found, played, content[:60]))
    assert shorter == []
