"""A film of H.264 or HEVC is measured only if each sample is one picture, shown for as long as the stream states."""

import struct
from fractions import Fraction

import pytest

from genlock.media.budget import NotMeasured
from genlock.media.duration import duration
from genlock.media.nal_pictures import H264Stream
from genlock.media.shown_pictures import shown_in_jpeg
from tests.media.boxes import TABLES, box, edit
from tests.media.field_films import configuration, film, key_field, parameters, part, sample, skipped_field
from tests.media.forged_pictures import (
    encode,
    forged_pictures,
    joined,
    packets,
    pictures_in_a_copy,
    with_block_times,
    with_edits,
    with_packets,
    with_times,
)

CODECS = ("libx264", "libx265")


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("container", ["mp4", "mov", "matroska"])
def test_a_film_with_several_pictures_in_a_sample_is_not_measured(codec: str, container: str) -> None:
    original = encode(codec, "mp4", "bframes=0")
    forged = joined(original, container, 10)

    assert duration(with_packets(original, container, packets(original))) == pytest.approx(2, abs=0.1)
    assert pictures_in_a_copy(original) == pictures_in_a_copy(forged) == 50
    assert len(packets(forged)) == 5
    assert duration(forged) is None


@pytest.mark.parametrize(
    ("codec", "settings"),
    [
        *(("libx264", "slices=4:" + more) for more in ("aud=1", "repeat-headers=1:pic-struct=1", "interlaced=1:bff=1")),
        ("libx264", "slice-max-size=100"),
        ("libx264", "nal-hrd=cbr:vbv-maxrate=300:vbv-bufsize=300:bitrate=300:filler=1"),
        ("libx264", "bframes=8:b-pyramid=normal:ref=8:cqm=jvt"),
        ("libx264", "fake-interlaced=1"),
        ("libx265", "slices=2:aud=1:repeat-headers=1:hash=1"),
        ("libx265", "interlace=tff:field=1"),
        ("libx265", "scaling-list=default:temporal-layers=2:open-gop=1:keyint=20"),
        ("libx265", "hrd=1:vbv-maxrate=300:vbv-bufsize=300:bitrate=300:hdr10=1:chromaloc=2:overscan=show:sar=2"),
        ("mjpeg", ""),
    ],
)
def test_films_of_encoders_are_measured(codec: str, settings: str) -> None:
    for container in ("mp4", "mov", "matroska") if codec in CODECS else ("mov",):
        assert duration(encode(codec, container, settings)) == pytest.approx(2, abs=0.1), container


def test_forged_films_are_not_measured_or_at_their_full_length() -> None:
    measured = {name: found for name, content in forged_pictures() if (found := duration(content)) is not None}
    assert measured == {"times before zero": pytest.approx(52, abs=0.1)}


def test_the_two_fields_of_a_picture_are_one_picture() -> None:
    pairs = [sample(skipped_field(number % 16, bottom=0), skipped_field(number % 16)) for number in range(1, 25)]
    first = sample(key_field(), skipped_field())
    settings = configuration(parameters())

    whole = film([first, *pairs], settings)
    assert duration(whole) == 1
    assert pictures_in_a_copy(whole) == 25
    assert duration(film([sample(key_field()), *pairs], settings)) == 1
    for forged in (
        first + pairs[0],
        sample(key_field(), skipped_field(bottom=0)),
        sample(key_field(), skipped_field(1)),
        sample(key_field(), skipped_field(reference=0)),
        sample(key_field(), key_field(bottom=1)),
    ):
        assert duration(film([forged, *pairs], settings)) is None


def test_slices_of_several_pictures_are_told_from_those_of_one() -> None:
    """FFmpeg looks at the places of slices in a picture only. Other decoders compare what they say about it."""
    stream = H264Stream(configuration(parameters(order_bits=4)))
    same = [part(place, order="0000") for place in range(8)]
    assert stream.count(sample(*same)) == 1
    assert stream.count(sample(*(part(place, key=3, order="0000") for place in range(8)))) == 1
    for other in (
        [part(place, order="0000", frame_number=place) for place in range(8)],
        [part(place, order=f"{place:04b}") for place in range(8)],
        [part(place, order="0000", form=place) for place in range(8)],
        [part(place, order="0000", reference=place % 2 << 5) for place in range(8)],
        [part(place, order="0000", key=place) for place in range(8)],
    ):
        assert stream.count(sample(*other)) == 8
    stream.count(sample(parameters(frame_number_bits=8)))
    assert stream.count(sample(*same)) == 8


def test_fields_are_not_told_from_pictures_if_there_are_parameters_of_two_forms() -> None:
    pair = sample(key_field(), skipped_field())
    stream = H264Stream(configuration(parameters(), parameters(tick=(1, 50))))
    assert (stream.count(pair), stream.picture_seconds) == (1, 0.04)
    other = parameters(frame_number_bits=8)
    assert H264Stream(configuration(parameters(), other)).count(pair) == 2
    assert stream.count(sample(other)) == 0
    assert stream.count(pair) == 2


@pytest.mark.parametrize("in_band", [False, True])
def test_a_film_that_states_a_very_slow_rate_is_not_measured(in_band: bool) -> None:  # noqa: FBT001
    for tick, expected in (((1, 50), 1), ((50, 1), None)):
        stated = parameters(tick=tick)
        units = (stated, key_field(), skipped_field()) if in_band else (key_field(), skipped_field())
        found = duration(film([sample(*units)] * 25, configuration(parameters() if in_band else stated)))
        assert found == expected, tick


@pytest.mark.parametrize("codec", CODECS)
def test_a_slow_show_of_pictures_is_measured(codec: str) -> None:
    assert duration(encode(codec, "mp4", "bframes=0", rate=Fraction(1, 5), count=4)) == pytest.approx(20, abs=0.5)


def with_configuration(content: bytes, *more: bytes, length: int = 3) -> bytes:
    def change(table: bytes) -> bytes:
        at = table.index(b"avcC")
        [size] = struct.unpack_from(">I", table, at - 4)
        body = bytearray(table[at + 4 : at - 4 + size])
        body[4] = 0xFC | length
        entry = table[12 : at - 4] + b"".join(more) + box(b"avcC", bytes(body)) + table[at - 4 + size :]
        return table[:8] + struct.pack(">I", 4 + len(entry)) + entry

    return edit(content, (b"moov", *TABLES, b"stsd"), change)


def test_the_configuration_must_be_the_one_that_decoders_use() -> None:
    content = encode("libx264", "mp4", "bframes=0")
    assert duration(with_configuration(content)) == pytest.approx(2, abs=0.1)
    assert duration(with_configuration(content, box(b"free", b""))) == pytest.approx(2, abs=0.1)
    for forged in (
        with_configuration(content, box(b"glbl", b"\0\0\0\1\x67")),
        with_configuration(content, box(b"avcC", configuration(parameters()))),
        with_configuration(content, length=1),
        content.replace(b"avcC", b"free"),
    ):
        assert duration(forged) is None


def test_a_sample_with_too_many_units_is_not_measured() -> None:
    filler = b"\x0c\x80"
    settings = configuration(parameters())
    assert duration(film([sample(key_field(), *[filler] * 900)], settings)) is not None
    assert duration(film([sample(key_field(), *[filler] * 1000)], settings)) is None
    assert duration(film([sample(key_field(), *[filler] * 900)] * 1200, settings)) is None


@pytest.mark.parametrize(
    "unit",
    [b"", b"\x01", b"\x01\x00\x00\x03\x00", b"\x02\x80", b"\x67", b"\x67" + b"\0" * 40, b"\x67" + b"\xff" * 2000],
)
def test_a_unit_that_is_not_understood_is_not_measured(unit: bytes) -> None:
    with pytest.raises(NotMeasured):
        H264Stream(configuration(parameters())).count(sample(key_field(), unit))
    with pytest.raises(NotMeasured):
        H264Stream(configuration(parameters())[:8])


def test_several_pictures_of_jpeg_are_found() -> None:
    content = encode("mjpeg", "mov")
    pictures = packets(content)
    assert {shown_in_jpeg(picture) for picture in pictures} == {1}
    assert shown_in_jpeg(pictures[0] + pictures[1]) == 2
    assert duration(joined(content, "mov", 10)) is None
    for other in (b"", b"\xff\xd8\xff\xd9" + pictures[0], pictures[0][2:], b"\xff\xd8" + b"\xff\xfe\0\2" * 200):
        with pytest.raises(NotMeasured):
            shown_in_jpeg(other)


def test_pictures_in_quick_succession_are_counted_at_the_highest_rate_of_cameras() -> None:
    content = encode("libx264", "mp4", "bframes=0")
    assert duration(with_times(content, [41] * 50, scale=10_000)) == 1  # the headers state one second
    assert duration(with_times(encode("libx264", "mp4", "bframes=0", count=480), [1] * 480)) == 2


def test_a_film_in_matroska_is_as_long_as_its_pictures_at_the_stated_rate() -> None:
    content = encode("libvpx", "webm")
    assert duration(content) == pytest.approx(2, abs=0.1)
    assert duration(with_block_times(content, lambda number: number)) == pytest.approx(2, abs=0.1)
    assert duration(with_block_times(content, lambda number: 100 * number)) == pytest.approx(5, abs=0.1)


def test_a_film_with_one_edit_is_measured() -> None:
    content = encode("libx264", "mp4", "bframes=0")
    assert duration(with_edits(content, [(500, -1), (2000, 0)])) == pytest.approx(2.5, abs=0.1)
    assert duration(with_edits(content, [(1000, 0), (1000, 0)])) is None
