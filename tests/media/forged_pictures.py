"""Films whose samples hold several pictures, or state that a picture is shown for longer than its time."""

import io
import struct
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from functools import cache
from typing import Any

import av
from PIL import Image

from tests.media import field_films
from tests.media.boxes import TABLES, box, edit, split

#: of H.264: the delimiter of pictures, and a comment
DELIMITER, COMMENT = b"\x09\xf0", b"\x06\x05\x01\x00\x80"
START_CODE = b"\0\0\1"


@cache
def encode(
    codec: str, container: str, parameters: str = "", *, rate: Fraction = Fraction(25), count: int = 50
) -> bytes:
    """Return a film with parameters in the form of x264 and x265."""
    file = io.BytesIO()
    name = {"libx264": "x264-params", "libx265": "x265-params"}.get(codec)
    options = {name: f"log-level=0:{parameters}"} if name else {}
    with av.open(file, "w", format=container) as out:
        stream: Any = out.add_stream(codec, rate=rate, options=options)
        stream.width, stream.height, stream.pix_fmt = 128, 128, "yuvj420p" if codec == "mjpeg" else "yuv420p"
        for number in range(count):
            frame: Any = av.VideoFrame.from_image(Image.new("RGB", (128, 128), (4 * number, 0, 0)))  # type: ignore[no-untyped-call]
            frame.pts, frame.time_base = number, 1 / rate
            out.mux(stream.encode(frame))
        out.mux(stream.encode(None))
    return file.getvalue()


def packets(film: bytes) -> list[bytes]:
    with av.open(io.BytesIO(film), "r") as file:
        return [bytes(packet) for packet in file.demux(video=0) if packet.size]


def with_packets(film: bytes, container: str, samples: Sequence[bytes], rate: int = 25, **options: str) -> bytes:
    """Return a film with other samples, at a constant rate."""
    file = io.BytesIO()
    with av.open(io.BytesIO(film), "r") as source, av.open(file, "w", format=container, options=options) as out:
        [original] = source.streams.video
        stream = out.add_stream_from_template(original)
        assert original.time_base is not None
        step = round(1 / original.time_base / rate)
        for number, sample in enumerate(samples):
            packet = av.Packet(sample)
            packet.stream, packet.time_base, packet.duration = stream, original.time_base, step
            packet.pts = packet.dts = number * step
            packet.is_keyframe = number == 0
            out.mux(packet)
    return file.getvalue()


def joined(film: bytes, container: str, count: int) -> bytes:
    """Return a film with several pictures in each sample."""
    pictures = packets(film)
    return with_packets(film, container, [b"".join(pictures[at : at + count]) for at in range(0, len(pictures), count)])


def pictures_in_a_copy(film: bytes) -> int:
    """Count the pictures that a decoder shows after the stream was copied to a transport stream."""
    file = io.BytesIO()
    with av.open(io.BytesIO(film), "r") as source, av.open(file, "w", format="mpegts") as out:
        stream = out.add_stream_from_template(source.streams.video[0])
        for packet in source.demux(video=0):
            if packet.dts is not None:
                packet.stream = stream
                out.mux(packet)
    file.seek(0)
    with av.open(file, "r") as copy:
        return sum(1 for _ in copy.decode(video=0))


def units_of(sample: bytes) -> list[bytes]:
    units, at = [], 0
    while at < len(sample):
        size = int.from_bytes(sample[at : at + 4])
        units.append(sample[at + 4 : at + 4 + size])
        at += 4 + size
    return units


def between_units(film: bytes, more: bytes) -> bytes:
    """Return a film with another unit after each unit of a sample."""
    samples = [
        field_films.sample(*(part for unit in units_of(packet) for part in (unit, more))) for packet in packets(film)
    ]
    return with_packets(film, "mp4", samples)


def inside_a_unit(film: bytes, count: int) -> bytes:
    """Return a film whose samples are one unit each, with the units of several pictures inside."""
    pictures = [START_CODE.join(units_of(packet)) for packet in packets(film)]
    groups = [START_CODE.join(pictures[at : at + count]) for at in range(0, len(pictures), count)]
    return with_packets(film, "mp4", [field_films.sample(group) for group in groups])


def with_times(film: bytes, durations: Sequence[int], offsets: Sequence[int] = (), *, scale: int = 10_000) -> bytes:
    """Return a film without edits whose samples have other times, and whose headers say the same."""

    def change_media(header: bytes) -> bytes:
        return header[:12] + struct.pack(">II", scale, sum(durations)) + header[20:]

    def change_tables(tables: bytes) -> bytes:
        new = {
            b"stts": struct.pack(">II", 0, len(durations))
            + b"".join(struct.pack(">II", 1, duration) for duration in durations),
            b"ctts": struct.pack(">II", 1 << 24, len(offsets))
            + b"".join(struct.pack(">Ii", 1, offset) for offset in offsets),
        }
        kept = [(name, body) for name, body in split(tables) if name not in new]
        return b"".join(box(name, body) for name, body in (*kept, *new.items()) if name != b"ctts" or offsets)

    def change_movie(moov: bytes) -> bytes:
        moov = edit(moov, (b"mvhd",), lambda old: old[:16] + struct.pack(">I", 1000) + old[20:])
        moov = edit(moov, (b"trak", b"tkhd"), lambda old: old[:20] + struct.pack(">I", 1000) + old[24:])
        moov = edit(moov, (b"trak", b"mdia", b"mdhd"), change_media)
        moov = edit(moov, TABLES, change_tables)
        return edit(
            moov, (b"trak",), lambda old: b"".join(box(name, body) for name, body in split(old) if name != b"edts")
        )

    return edit(film, (b"moov",), change_movie)


def with_edits(film: bytes, edits: Sequence[tuple[int, int]]) -> bytes:
    """Return a film with another list of edits: the milliseconds of each, and where it begins."""
    table = struct.pack(">II", 0, len(edits)) + b"".join(struct.pack(">IiI", *entry, 1 << 16) for entry in edits)
    return edit(film, (b"moov", b"trak", b"edts"), lambda _: box(b"elst", table))


def with_block_times(film: bytes, time_of: Callable[[int], int]) -> bytes:
    """Return a film in Matroska, of one cluster, whose blocks have other times in milliseconds."""
    changed, at = bytearray(film), 0
    for number, packet in enumerate(packets(film)):
        at = film.index(packet, at + 1)
        struct.pack_into(">h", changed, at - 3, time_of(number))
    struct.pack_into(">d", changed, film.index(b"\x44\x89\x88") + 3, 1000.0)
    return bytes(changed)


def forged_pictures() -> Iterator[tuple[str, bytes]]:
    film = encode("libx264", "mp4", "bframes=0:slices=4")
    yield "several pictures of H.264 in a sample", joined(film, "mp4", 10)
    yield "several pictures of H.264 in a block", joined(film, "matroska", 10)
    yield "delimiters between slices", between_units(film, DELIMITER)
    yield "comments between slices", between_units(film, COMMENT)
    yield "pictures inside a unit", inside_a_unit(film, 10)
    hevc = encode("libx265", "mp4", "bframes=0")
    yield "several pictures of HEVC in a sample", joined(hevc, "mp4", 10)
    for codec in ("libx264", "libx265"):
        slow = encode(codec, "mp4", "bframes=0", rate=Fraction(1, 50))
        yield f"pictures of {codec} that state fifty seconds", with_times(slow, [50, 50, 500] * 16 + [50] * 2)
    yield "times before zero", with_times(film, [200] * 50, [(number - 50) * 10_000 for number in range(50)])
    yield "pictures without times", with_times(film, [0] * 50)
    yield "very many edits", with_edits(film, [(1, 0)] * 1000)
    in_matroska = encode("libx264", "matroska", "bframes=0")
    yield "blocks that follow each other quickly", with_block_times(in_matroska, lambda number: number)
    yield "blocks before zero", with_block_times(in_matroska, lambda number: -number)
    for codec in ("libx264", "libvpx"):
        film = encode(codec, "matroska", "bframes=0" if codec == "libx264" else "")
        yield f"blocks of {codec} that alternate", with_block_times(film, lambda number: number % 2 * 900)
