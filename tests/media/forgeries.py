"""Files that state a short length, or hide a long one, while players play longer."""

import io
import re
import struct
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from fractions import Fraction
from functools import cache, partial
from itertools import accumulate, pairwise
from typing import Any

import av
from av.container import InputContainer

from genlock.sandbox.kie.media import make_video
from tests.media.boxes import TABLES, box, edit, nested, split
from tests.media.forged_containers import forged_containers
from tests.media.forged_fragments import forged_fragments
from tests.media.forged_pictures import forged_pictures
from tests.media.forged_streams import forged_mp3, forged_ogg, forged_waves, forged_webm
from tests.media.samples import encode_audio, encode_video

#: boxes that some player opens although no index belongs there
CONTAINERS = (
    b"udta",
    b"edts",
    b"minf",
    b"dinf",
    b"mvex",
    b"mdia",
    b"stbl",
    b"trak",
    b"meta",
    b"ilst",
    b"wave",
    b"tref",
)
OPAQUE = (b"free", b"skip", b"wide", b"uuid", b"abcd", b"hoov", b"foov")


def played_seconds(content: bytes) -> float:
    """Return the longest length that FFmpeg finds: what it states, when frames are shown, how much audio there is."""
    with av.open(io.BytesIO(content), "r") as file:
        longest = (file.duration or 0) / 1e6
        audio = Fraction(0)
        ends: list[tuple[Fraction, Fraction]] = []
        for frame in _decoded(file):
            if isinstance(frame, av.AudioFrame):
                audio += Fraction(frame.samples, frame.sample_rate)
            if frame.pts is not None and frame.time_base is not None:
                ends.append((frame.pts * frame.time_base, (frame.pts + (frame.duration or 0)) * frame.time_base))
    if ends:
        longest = max(longest, float(max(end for _, end in ends) - min(start for start, _ in ends)))
    return max(longest, float(audio))


def _decoded(file: InputContainer) -> Iterator[Any]:
    """Yield the frames of the first stream with a picture or sound. Players skip what they cannot decode."""
    streams = file.streams.video or file.streams.audio
    try:
        for packet in file.demux(streams[0]) if streams else ():
            with suppress(av.FFmpegError):
                yield from packet.decode()
    except av.FFmpegError:
        pass  # what was read until then counts


def moved(moov: bytes, by: int) -> bytes:
    """Return the content of an index whose media data lies further on."""

    def shift(table: bytes) -> bytes:
        return table[:8] + b"".join(struct.pack(">I", offset + by) for [offset] in struct.iter_unpack(">I", table[8:]))

    return edit(moov, (b"trak", b"mdia", b"minf", b"stbl", b"stco"), shift)


@cache
def long_video() -> tuple[bytes, bytes, bytes]:
    """Return the content of ftyp, mdat and moov of a video of twelve seconds, the index after the data."""
    boxes = dict(split(encode_video("mp4", "libx264")))
    return boxes[b"ftyp"], boxes[b"mdat"], boxes[b"moov"]


@cache
def short_index() -> bytes:
    """Return the content of an index that states two seconds."""
    return dict(split(make_video("decoy", {"prompt": "x"}, 0)))[b"moov"]


def beside_a_decoy(hidden: Callable[[bytes], bytes], *, first: bool = True) -> bytes:
    """Return a file with a short index, and a long one in the box that `hidden` makes of it."""
    ftyp, mdat, moov = long_video()
    head = box(b"ftyp", ftyp)
    size = len(hidden(moov)) if first else 0
    before = len(head) + (size if first else 0)
    # The long index names positions in a file in which the media data follows ftyp.
    old = 8 + len(ftyp) + _between()
    secret = hidden(moved(moov, before - old))
    decoy = box(b"moov", short_index())
    parts = (head, secret, box(b"mdat", mdat), decoy) if first else (head, box(b"mdat", mdat), decoy, secret)
    return b"".join(parts)


@cache
def _between() -> int:
    """Return how many bytes are between ftyp and the media data of the encoded video."""
    content = encode_video("mp4", "libx264")
    names = [name for name, _ in split(content)]
    return sum(8 + len(body) for name, body in split(content)[1 : names.index(b"mdat")])


def with_index(moov: bytes) -> bytes:
    """Return the long video with another index."""
    ftyp, mdat, _ = long_video()
    return box(b"ftyp", ftyp) + box(b"free") * (_between() // 8) + box(b"mdat", mdat) + box(b"moov", moov)


def with_table(name: bytes, change: Callable[[bytes], bytes]) -> bytes:
    """Return the long video with a changed sample table and short headers."""
    moov = edit(long_video()[2], (b"trak", b"mdia", b"minf", b"stbl", name), change)
    return with_index(short_headers(moov))


def short_headers(moov: bytes) -> bytes:
    """Let every header of an index state one second."""

    def one_second(offset: int, scale: int | None = None) -> Callable[[bytes], bytes]:
        def change(header: bytes) -> bytes:
            [own] = struct.unpack_from(">I", header, 12)
            return header[:offset] + struct.pack(">I", scale or own) + header[offset + 4 :]

        return change

    moov = edit(moov, (b"mvhd",), one_second(16))
    moov = edit(moov, (b"trak", b"tkhd"), one_second(20, 1000))
    moov = edit(moov, (b"trak", b"mdia", b"mdhd"), one_second(16))
    return edit(
        moov,
        (b"trak", b"edts"),
        lambda _: box(b"elst", struct.pack(">II", 0, 1), struct.pack(">IiI", 1000, 0, 1 << 16)),
    )


def _edits(entries: list[tuple[int, int]]) -> bytes:
    table = struct.pack(">II", 0, len(entries)) + b"".join(struct.pack(">IiI", *entry, 1 << 16) for entry in entries)
    return with_index(edit(short_headers(long_video()[2]), (b"trak", b"edts"), lambda _: box(b"elst", table)))


def forged_mpeg4() -> Iterator[tuple[str, bytes]]:
    ftyp, _, moov = long_video()
    tracks = b"".join(box(name, body) for name, body in split(moov) if name == b"trak")
    for name in (*CONTAINERS, *OPAQUE):
        yield f"index in {name!r}", beside_a_decoy(partial(nested, name, b"moov"))
        yield f"index in {name!r} twice", beside_a_decoy(partial(nested, name, name, b"moov"))
        yield f"track in {name!r}", beside_a_decoy(partial(box, name))
        yield f"late index in {name!r}", beside_a_decoy(partial(nested, name, b"moov"), first=False)
    yield "two indexes", beside_a_decoy(partial(box, b"moov"))
    yield "two indexes, decoy first", beside_a_decoy(partial(box, b"moov"), first=False)
    yield "compressed index", beside_a_decoy(compressed)
    for name in (b"udta", b"meta", b"trak", b"free", b"iods"):
        yield f"index in {name!r} of the index", with_index(box(name, box(b"moov", moov)) + short_index())
        yield f"track in {name!r} of the index", with_index(short_index() + box(name, tracks))
    yield "short headers", with_table(b"stts", lambda table: table)
    yield "fewer times than samples", with_table(b"stts", lambda table: struct.pack(">III", 0, 1, 1) + table[12:16])
    yield "last sample late", with_table(b"ctts", lambda _: struct.pack(">IIIiIi", 0, 2, 59, 0, 1, 60 * 10240))
    yield "an edit repeated", _edits([(1000, 0)] * 12)
    yield "a late start", _edits([(11_000, -1), (1000, 0)])
    yield "a start without an end", _edits([(11_000, -1), (0, 0)])
    yield (
        "a box beyond the file",
        box(b"ftyp", ftyp)
        + struct.pack(">I4s", 1 << 30, b"udta")
        + beside_a_decoy(partial(box, b"moov"))[8 + len(ftyp) :],
    )
    yield "audio with short times", short_audio_times()
    yield from forged_audio()


def compressed(moov: bytes) -> bytes:
    whole = box(b"moov", moov)
    packed = zlib.compress(whole)
    return box(b"moov", box(b"cmov", box(b"dcom", b"zlib"), box(b"cmvd", struct.pack(">I", len(whole)), packed)))


def short_audio_times() -> bytes:
    """Return audio of twelve seconds whose frames are said to follow each other within one second."""

    def hurry(table: bytes) -> bytes:
        return table[:8] + b"".join(struct.pack(">II", count, 80) for count, _ in struct.iter_unpack(">II", table[8:]))

    content = encode_audio("ipod", "aac", "fltp")
    path = (b"moov", b"trak", b"mdia", b"minf", b"stbl", b"stts")
    return edit(edit(content, path, hurry), (b"moov",), short_headers)


def forged_audio() -> Iterator[tuple[str, bytes]]:
    """Yield audio of twelve seconds whose description or frames differ from what they seem."""
    content = encode_audio("ipod", "aac", "fltp")
    frames = frames_of(content)
    yield "all frames in one sample", with_samples(content, [b"".join(frames)])
    for count in (2, 5, 10):
        groups = [b"".join(frames[at : at + count]) for at in range(0, len(frames), count)]
        yield f"{count} frames in a sample", with_samples(content, groups)
        mixed = [sample for at, group in enumerate(groups) for sample in ([group] if at % 4 else frames[:count])]
        yield f"{count} frames in some samples", with_samples(content, mixed)
    for media in (b"", b"soun"):
        yield f"a handler of text, {media!r} for its data", with_samples(content, frames, _as_text(media))
    yield "a configuration that is none", with_samples(content, frames, partial(_described, _hidden_configuration))
    slow = encode_audio("adts", "aac", "fltp", 8000)
    yield (
        "frames with headers of another rate",
        with_samples(content, adts_frames(slow), partial(_described, _at_96_khz)),
    )
    yield "a frame with a header after another", with_samples(content, [frames[0] + f for f in adts_frames(slow)])
    yield (
        "MP3 as an extension of AAC",
        with_samples(content, _mp3_frames(), partial(_described, _as_mp3)),
    )


def frames_of(content: bytes) -> list[bytes]:
    """Return the samples of a file with one track, whose samples lie one after the other."""
    boxes = dict(split(content))
    sizes: list[int] = []

    def read(table: bytes) -> bytes:
        sizes.extend(size for [size] in struct.iter_unpack(">I", table[12:]))
        return table

    edit(boxes[b"moov"], (*TABLES, b"stsz"), read)
    ends = list(accumulate(sizes))
    return [boxes[b"mdat"][end - size : end] for size, end in zip(sizes, ends, strict=True)]


def adts_frames(content: bytes) -> list[bytes]:
    frames, at = [], 0
    while at < len(content):
        size = (content[at + 3] & 3) << 11 | content[at + 4] << 3 | content[at + 5] >> 5
        frames.append(content[at : at + size])
        at += size
    return frames


def _mp3_frames() -> list[bytes]:
    """Return frames of MP3 in the form of samples: the first twelve bits are their length."""
    content = encode_audio("mp3", "libmp3lame", "s16p", 16_000)
    first = content.index(b"\xff\xf3")
    starts = [match.start() for match in re.finditer(re.escape(content[first : first + 2]), content)] + [len(content)]
    return [
        struct.pack(">H", (end - start) << 4 | content[start + 1] & 15) + content[start + 2 : end]
        for start, end in pairwise(starts)
    ]


def _as_mp3(table: bytes) -> bytes:
    """Change the configuration to type 29 at 96 kHz, with the bits that mean MP3."""
    at = table.index(b"\x05\x80\x80\x80") + 5
    return table[:at] + struct.pack(">H", 29 << 11 | 0 << 7 | 1 << 3 | 1) + b"\0" * 3 + table[at + 5 :]


def with_samples(content: bytes, samples: list[bytes], change: Callable[[bytes], bytes] = bytes) -> bytes:
    """Return audio with other samples, all within one second, and a changed index."""
    boxes, count = dict(split(content)), len(samples)
    head = box(b"ftyp", boxes[b"ftyp"])
    tables = {
        b"stts": struct.pack(">IIII", 0, 1, count, 48_000 // count),
        b"stsz": struct.pack(">III", 0, 0, count) + b"".join(struct.pack(">I", len(sample)) for sample in samples),
        b"stsc": struct.pack(">IIIII", 0, 1, 1, count, 1),
        b"stco": struct.pack(">III", 0, 1, len(head) + 8),
    }

    def replace(old: bytes) -> bytes:
        return b"".join(
            box(name, tables.get(name, body)) for name, body in split(old) if name not in (b"sgpd", b"sbgp")
        )

    moov = short_headers(change(edit(boxes[b"moov"], TABLES, replace)))
    return head + box(b"mdat", b"".join(samples)) + box(b"moov", moov)


def _as_text(media: bytes) -> Callable[[bytes], bytes]:
    """Let the track be one of text, with another type in the handler of its data."""

    def change(moov: bytes) -> bytes:
        moov = edit(moov, (b"trak", b"mdia", b"hdlr"), lambda old: old[:8] + b"text" + old[12:])
        handler = box(b"hdlr", bytes(4), b"dhlr", media, bytes(13)) if media else b""
        return edit(moov, (b"trak", b"mdia", b"minf"), lambda old: handler + old)

    return change


def _described(change: Callable[[bytes], bytes], moov: bytes) -> bytes:
    return edit(moov, (*TABLES, b"stsd"), change)


def _at_96_khz(table: bytes) -> bytes:
    at = table.index(b"\x05\x80\x80\x80") + 5
    [configuration] = struct.unpack_from(">H", table, at)
    return table[:at] + struct.pack(">H", configuration & ~(15 << 7)) + table[at + 2 :]


def _hidden_configuration(table: bytes) -> bytes:
    """Put the configuration into a box that players ignore."""
    forged = _at_96_khz(table)
    at = forged.index(b"esds")
    entry = forged[12 : at - 4] + box(b"abcd", forged[at:])
    return forged[:8] + struct.pack(">I", 4 + len(entry)) + entry


def forgeries() -> Iterator[tuple[str, bytes]]:
    for make in (
        forged_mpeg4, forged_fragments, forged_pictures, forged_waves, forged_mp3, forged_ogg, forged_webm,
        forged_containers,
    ):  # fmt: skip
        yield from make()
