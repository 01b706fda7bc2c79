"""A film that was written in fragments, as browsers write it, is measured as one that was written as a whole."""

import struct
from contextlib import suppress
from time import process_time

import pytest

from genlock.media.budget import TooComplex
from genlock.media.duration import duration
from tests.media.boxes import box, edit, split
from tests.media.forged_fragments import film, forged_fragments, index_before, with_times, without_index
from tests.media.forged_pictures import encode, packets, with_packets
from tests.media.samples import SECONDS, encode_audio

_RUN = (b"moof", b"traf", b"trun")


@pytest.mark.parametrize(
    "flags",
    [
        "frag_keyframe", "frag_keyframe+empty_moov", "frag_keyframe+empty_moov+default_base_moof", "frag_every_frame",
        "frag_keyframe+delay_moov", "frag_keyframe+separate_moof", "dash", "dash+delay_moov", "cmaf",
    ],
)  # fmt: skip
@pytest.mark.parametrize("codec", ["libx264", "libx265"])
def test_a_film_in_fragments_is_measured(codec: str, flags: str) -> None:
    original = encode(codec, "mp4", "keyint=10:bframes=0")
    for container in ("mp4", "mov"):
        content = with_packets(original, container, packets(original), movflags=flags)
        assert duration(content) == pytest.approx(2, abs=0.05), container


def test_pictures_in_fragments_are_counted() -> None:
    original = encode("libx264", "mp4", "bframes=0")
    pictures = packets(original)
    flags = "frag_keyframe+empty_moov+default_base_moof"
    joined = [b"".join(pictures[at : at + 10]) for at in range(0, 50, 10)]
    assert duration(with_packets(original, "mp4", joined, movflags=flags)) is None
    quick = with_packets(original, "mp4", pictures, rate=1000, movflags=flags)
    assert duration(quick) == pytest.approx(50 / 240)


def test_forged_films_in_fragments_are_not_measured_or_at_their_full_length() -> None:
    assert {name: found for name, content in forged_fragments() if (found := duration(content))} == {
        "fragments that begin late": pytest.approx(112),
        "fragments that all begin at zero": pytest.approx(12),
        "fragments that go back and forth": pytest.approx(38, abs=1),
        "a header that states more": pytest.approx(90),
    }


def test_samples_before_their_header_or_their_time_are_not_measured() -> None:
    """Players read them with the header and the time of the samples before."""
    whole = without_index(film())
    for last in (b"tfhd", b"tfdt"):

        def reorder(part: bytes, last: bytes = last) -> bytes:
            return b"".join(box(*each) for each in sorted(split(part), key=lambda each: each[0] == last))

        assert duration(edit(whole, (b"moof", b"traf"), reorder)) is None


def test_an_index_in_other_units_than_its_track_counts_as_players_read_it() -> None:
    """They take its end for one in units of the track, so that two seconds become forty."""
    whole = without_index(film())
    at = whole.index(b"moof") - 4
    size = struct.unpack_from(">I", whole, at)[0] + struct.unpack_from(">I", whole, at + 4 + 8)[0]
    [units] = struct.unpack_from(">I", dict(split(whole))[b"moov"], _media_header(whole) + 12)
    index = index_before(40 * units, size=size, scale=20 * units)
    index = index[:12] + struct.pack(">I", 1) + index[16:]
    assert duration(whole[:at] + index + whole[at:]) == pytest.approx(40)


def _media_header(content: bytes) -> int:
    return dict(split(content))[b"moov"].index(b"mdhd") + 4


def test_fragments_that_are_not_understood_are_not_measured() -> None:
    whole = without_index(film())
    at = whole.index(b"moof") - 4
    assert duration(whole) == pytest.approx(SECONDS, abs=0.5)
    defaults = box(b"trex", struct.pack(">IIIIII", 0, 1, 1, 1, 1, 0))
    for forged in (
        whole[at:],
        whole[:24] + whole[at:],
        whole + box(b"moof", box(b"mfhd", bytes(8))),
        whole.replace(b"mvex", b"free", 1),
        edit(whole, (b"moov",), lambda body: body + box(b"trak", dict(split(body))[b"trak"])),
        edit(whole, (b"moov", b"mvex"), lambda body: body + defaults),
        edit(whole, (b"moov", b"mvex", b"trex"), lambda body: body[:4] + struct.pack(">I", 2) + body[8:]),
        edit(whole, (b"moof", b"traf", b"tfhd"), lambda body: body[:4] + struct.pack(">I", 2) + body[8:]),
        edit(whole, (b"moof", b"traf", b"tfhd"), lambda body: struct.pack(">I", 0x30038) + body[4:]),
        edit(whole, _RUN, lambda body: body[:4] + struct.pack(">I", 2**31) + body[8:]),
        edit(whole, _RUN, lambda body: struct.pack(">I", 0x1A05) + body[4:]),
        edit(whole, _RUN, lambda body: body[:8] + struct.pack(">i", -(2**31)) + body[12:]),
        with_times(whole, lambda _: 2**62),
    ):
        assert duration(forged) is None


def test_the_audio_of_fragments_is_decoded() -> None:
    """The times of samples are forged, and the number of frames counts."""
    content = encode_audio("ipod", "aac", "fltp", fragments=True)
    assert duration(content) == pytest.approx(SECONDS, abs=0.1)
    quick = edit(content, (b"moof", b"traf", b"tfhd"), lambda body: body[:8] + struct.pack(">I", 1) + body[12:])
    quick = edit(quick, (b"moof", b"traf", b"tfdt"), lambda body: body[:4] + bytes(len(body) - 4))
    assert duration(without_index(quick)) == pytest.approx(SECONDS, abs=0.1)


def test_a_long_film_in_fragments_has_not_too_many_samples() -> None:
    """As many as 80 minutes at 60 pictures per second have."""
    entries = struct.pack(">IIIi", 10_240 // 5, 0, 0, 0) * 60 * 80 * 60
    run = box(b"trun", struct.pack(">IIi", 0xF01, 60 * 80 * 60, 0), entries)
    header = box(b"tfhd", struct.pack(">II", 0x20000, 1))
    fragment = box(b"moof", box(b"mfhd", bytes(8)), box(b"traf", header, run))
    assert duration(without_index(film()) + fragment) == pytest.approx(57_600, abs=13)


@pytest.mark.slow
def test_runs_made_to_take_long_are_given_up() -> None:
    whole = without_index(film())
    many = box(b"trun", struct.pack(">IIi", 1, 2**31, 0))
    bomb = edit(whole, (b"moof", b"traf"), lambda body: body + many)
    runs = edit(whole, (b"moof", b"traf"), lambda body: body + box(b"trun", struct.pack(">IIi", 1, 5, 0)) * 900)
    for content in (bomb, runs, whole + box(b"moof", box(b"mfhd", bytes(8)), box(b"traf", b"")) * 100_000):
        started = process_time()
        with suppress(TooComplex):
            assert duration(content) is None
        assert process_time() - started < 5
