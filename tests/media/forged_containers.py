"""Files that players take for another format than their first bytes say, or that state a length at several places."""

import struct
from collections.abc import Callable, Iterator
from random import Random

from tests.media.boxes import TABLES, box, edit
from tests.media.forged_streams import format_chunk, wave
from tests.media.samples import encode_audio, encode_video

#: the header of a frame of MP3 with 320 kilobits, and the bytes of such a frame
_HEADER, _FRAME = b"\xff\xfb\xe8\xc4", 1440
_MATRIX = struct.pack(">9I", 0x10000, 0, 0, 0, 0x10000, 0, 0, 0, 1 << 30)


def forged_containers() -> Iterator[tuple[str, bytes]]:
    yield from _waves()
    yield from _mp3()
    yield from _stated_frames()
    yield from _transport_streams()
    yield "estimated by a bit rate", _without_duration(encode_audio("matroska", "libmp3lame", "s16p", 24_000))
    yield from _configurations()
    yield "AAC with the times of PCM", _uncompressed()
    yield "AAC in a track of text", _as_text(_with_short_times())


def _waves() -> Iterator[tuple[str, bytes]]:
    mp3 = encode_audio("mp3", "libmp3lame", "s16p", 24_000)
    frames = mp3[mp3.index(b"\xff\xf3") :]
    for silence in (270_000, 1_000_000):
        yield (
            f"MP3 behind {silence} zeros",
            wave(format_chunk(1, 2, 192_000, 16), (b"data", bytes(silence) + frames * 8)),
        )
    stated = (b"fact", struct.pack("<I", 8000 * 3600))
    for size in (0, 0xFFFFFFFF):
        content = bytearray(wave(format_chunk(1, 1, 8000, 8), stated, (b"data", bytes(8000))))
        struct.pack_into("<I", content, content.index(b"data") + 4, size)
        yield f"an hour of samples stated, {size} bytes", bytes(content)


def recorder_of_speech() -> bytes:
    """Return a file of ACT, whose frames of speech follow the header of a WAV file. Not every player knows it."""
    head = wave(format_chunk(3, 1, 8000, 64), (b"data", b"")).ljust(256, b"\0")
    return (head + struct.pack("<BHBI", 0x84, 0, 0, 10)).ljust(512, b"\0") + bytes(range(256)) * 400


def _mp3() -> Iterator[tuple[str, bytes]]:
    index = _uncompressed_index(samples=8000 * 30, position=2000)
    head = (_HEADER + b"moov" + index + struct.pack(">I4s", 0x7FFFFFFF, b"mdat")).ljust(_FRAME, b"\x55")
    frames = (_HEADER + b"\x55" * (_FRAME - 4)) * 149
    yield "an index of MPEG-4 in the first frame", head + frames
    packets = encode_audio("mp2", "mp2", "s16", 16_000)
    yield (
        "packets of a program stream",
        b"".join(_packed(packets[at : at + 1200]) for at in range(0, len(packets), 1200)),
    )
    speech = bytearray((b"\xd0" + bytes(32)) * 1500)
    for at in range(0, len(speech) - 4, _FRAME):
        speech[at : at + 4] = _HEADER
    yield "frames of GSM", bytes(speech)
    noise = Random(1).randbytes(_FRAME * 60)
    gap = bytearray(noise)
    gap[33:2400:33], gap[10_032::33] = b"\xd0" * len(gap[33:2400:33]), b"\xd0" * len(gap[10_032::33])
    yield "frames of GSM with a gap", b"ID3\3\0\0\0\0\x0e\x58" + bytes(1880) + _with_headers(bytes(gap))
    # Bits of a frame of AMR state its mode, and thereby its size.
    for name, mode, size in (("narrow", 0, 13), ("narrow", 3, 18), ("wide", 0, 18), ("wide", 2, 33)):
        band = _speech(noise, bytes([mode << 3 | 4]), size)
        yield f"frames of AMR of the {name} band in mode {mode}", _with_headers(band)


def _speech(noise: bytes, first: bytes, size: int) -> bytes:
    """Return frames of a size that begin with some bytes. The first four bytes are for a header of MP3."""
    frames = (first + noise[at + len(first) : at + size] for at in range(4, len(noise) - size, size))
    return noise[:4] + b"".join(frames)


def _with_headers(stream: bytes) -> bytes:
    """Return a stream with a header of MP3 wherever a frame would begin."""
    whole = bytearray(stream[: len(stream) // _FRAME * _FRAME])
    for at in range(0, len(whole), _FRAME):
        whole[at : at + 4] = _HEADER
    return bytes(whole)


def _packed(audio: bytes) -> bytes:
    """Return a frame of MP3 whose content is packets of a program stream."""
    packets = (
        b"\0\0\1\xc0" + struct.pack(">H", 3 + len(part)) + b"\x80\0\0" + part
        for part in (audio[at : at + 200] for at in range(0, len(audio), 200))
    )
    return (_HEADER + b"".join(packets)).ljust(_FRAME, b"\0")


def _uncompressed_index(samples: int, position: int) -> bytes:
    """Return the content of an index of one track without compression, which lies in one piece."""
    length = samples // 8
    movie = struct.pack(">12xIIIH10x", 1000, length, 1 << 16, 256) + _MATRIX + bytes(24) + struct.pack(">I", 2)
    track = struct.pack(">IIIIII16x", 7, 0, 0, 1, 0, length) + _MATRIX + bytes(8)
    described = box(b"ulaw", struct.pack(">6xHHHIHHHHI", 1, 0, 0, 0, 1, 16, 0, 0, 8000 << 16))
    tables = box(
        b"stbl",
        box(b"stsd", struct.pack(">II", 0, 1), described),
        box(b"stts", struct.pack(">IIII", 0, 1, samples, 1)),
        box(b"stsc", struct.pack(">IIIII", 0, 1, 1, samples, 1)),
        box(b"stsz", struct.pack(">III", 0, 1, samples)),
        box(b"stco", struct.pack(">III", 0, 1, position)),
    )
    media = box(
        b"mdia",
        box(b"mdhd", struct.pack(">12xII4x", 8000, samples)),
        box(b"hdlr", bytes(4), b"mhlrsoun", bytes(13)),
        box(b"minf", box(b"smhd", bytes(8)), tables),
    )
    return box(b"mvhd", movie) + box(b"trak", box(b"tkhd", track), media)


def _stated_frames() -> Iterator[tuple[str, bytes]]:
    """Yield MP3 whose first frame states the number of frames at two places, or a number of none."""
    whole = encode_audio("mp3", "libmp3lame", "s16p", 24_000)
    start = whole.index(b"\xff\xf3")
    first, others = whole[start : start + 192], whole[start + 192 :]
    at = first.index(b"Info")
    many, few = struct.pack(">4sII", b"Xing", 1, 100_000), struct.pack(">4sII", b"Info", 1, 3)
    yield "a second number of frames", _with(_with(first, at, many), at + 16, few) + others
    other_mark = b"VBRI\0\1" + bytes(8) + struct.pack(">I", 100_000)
    yield "two marks", _with(_with(first[:4] + bytes(188), 36, other_mark), 8, few) + others
    slow = b"\xff\xf3\x34\xc0".ljust(72, b"\0")
    yield "no frames stated", _with(slow, at, struct.pack(">4sII", b"Xing", 1, 0)) + slow * 200 + others


def _transport_streams() -> Iterator[tuple[str, bytes]]:
    """Yield short files that hide a transport stream behind a header that players do not take seriously."""
    stream = encode_audio("mpegts", "aac", "fltp")[: 188 * 200]
    flac = encode_audio("flac", "flac", "s16")
    frames = flac.index(b"\xff\xf8", 42)
    frame = flac[frames : flac.index(b"\xff\xf8", frames + 10)]
    for blocks in ((0, 0), (4096, 16)):
        information = struct.pack(">HH", *blocks) + flac[12:18] + b"\x0b\xb8\0\xf0\0\0\x10\0" + bytes(16)
        hidden = b"\x81" + len(stream).to_bytes(3) + stream
        yield f"FLAC with blocks of {blocks}", b"fLaC\0\0\0\x22" + information + hidden + frame
    film = _first_second(encode_video("webm", "libvpx"))
    for types in (b"\x42\x82\x84abcd", b"\x42\x82\x84webm"):
        header = types + b"\xec" + (1 << 56 | len(stream)).to_bytes(8) + stream
        yield (
            f"Matroska with {types!r}",
            _element(b"\x1a\x45\xdf\xa3", header) + film[film.index(b"\x18\x53\x80\x67") :],
        )


def _first_second(film: bytes) -> bytes:
    """Return a film without its clusters, but with one short block."""
    start = film.index(b"\x1f\x43\xb6\x75")
    changed = bytearray(film[:start])
    size = changed.index(b"\x18\x53\x80\x67") + 4
    changed[size : size + 8] = b"\x01" + b"\xff" * 7
    struct.pack_into(">d", changed, changed.index(b"\x44\x89\x88") + 3, 1000.0)
    return bytes(changed) + _element(b"\x1f\x43\xb6\x75", b"\xe7\x81\0" + _element(b"\xa3", b"\x81\0\0\x80x"))


def _without_duration(film: bytes) -> bytes:
    """Return a film without its stated duration, and with a long gap behind the last cluster."""
    changed = bytearray(film)
    at = changed.index(b"\x44\x89\x88")
    changed[at : at + 11] = b"\xec\x89" + bytes(9)
    size = changed.index(b"\x18\x53\x80\x67") + 4
    gap = _element(b"\xec", bytes(1_000_000))
    changed[size : size + 8] = (1 << 56 | len(changed) - size - 8 + len(gap)).to_bytes(8)
    return bytes(changed) + gap


def _configurations() -> Iterator[tuple[str, bytes]]:
    """Yield audio with another configuration of its codec where no description is: at a seventh of the rate."""
    audio = encode_audio("ipod", "aac", "fltp")
    at = audio.index(b"esds") - 4
    [size] = struct.unpack_from(">I", audio, at)
    slow = bytearray(audio[at : at + size])
    place = slow.index(b"\x05\x80\x80\x80") + 5
    [configuration] = struct.unpack_from(">H", slow, place)
    struct.pack_into(">H", slow, place, configuration & ~(15 << 7) | 12 << 7)
    for name in (b"udta", b"tref"):
        yield f"a configuration in {name!r}", _in_track(audio, box(name, bytes(slow)))
    yield "a configuration two boxes deep", _in_track(audio, box(b"udta", box(b"sinf", bytes(slow))))


def _in_track(audio: bytes, addition: bytes) -> bytes:
    return edit(audio, (b"moov", b"trak"), lambda track: track + addition)


def _uncompressed() -> bytes:
    """Return audio of twelve seconds with two samples in the tables, of which each takes a unit of time."""
    audio = encode_audio("mov", "aac", "fltp")
    tables = (b"moov", *TABLES)
    sizes = audio[audio.index(b"stsz") + 4 :]
    [count] = struct.unpack_from(">I", sizes, 8)
    whole = sum(struct.unpack_from(f">{count}I", sizes, 12))

    def describe(old: bytes) -> bytes:
        return _with(old, old.index(b"mp4a") + 32, struct.pack(">IIII", 2, whole, whole, 2))

    changes: dict[bytes, Callable[[bytes], bytes]] = {
        b"stts": lambda _: struct.pack(">IIII", 0, 1, 2, 1),
        b"stsz": lambda old: old[:8] + struct.pack(">I", 2) + old[12:20],
        b"stsc": lambda _: struct.pack(">IIIII", 0, 1, 1, 2, 1),
        b"stco": lambda old: struct.pack(">II", 0, 1) + old[8:12],
        b"stsd": describe,
    }
    for name, change in changes.items():
        audio = edit(audio, (*tables, name), change)
    return _with_short_headers(audio)


def _with_short_times() -> bytes:
    """Return audio of twelve seconds whose samples are said to follow each other within one second."""
    audio = encode_audio("ipod", "aac", "fltp")
    times = (b"moov", *TABLES, b"stts")
    return _with_short_headers(
        edit(audio, times, lambda old: old[:8] + b"".join(struct.pack(">II", n, 80) for n, _ in _pairs(old[8:])))
    )


def _pairs(table: bytes) -> Iterator[tuple[int, int]]:
    return struct.iter_unpack(">II", table)


def _with_short_headers(audio: bytes) -> bytes:
    audio = edit(audio, (b"moov", b"mvhd"), lambda old: _with(old, 16, struct.pack(">I", 1000)))
    audio = edit(audio, (b"moov", b"trak", b"tkhd"), lambda old: _with(old, 20, struct.pack(">I", 1000)))
    audio = edit(audio, (b"moov", b"trak", b"mdia", b"mdhd"), lambda old: _with(old, 16, old[12:16]))
    edits = box(b"elst", struct.pack(">IIIiI", 0, 1, 1000, 0, 1 << 16))
    return edit(audio, (b"moov", b"trak", b"edts"), lambda _: edits)


def _as_text(audio: bytes) -> bytes:
    """Let the track be one of text for who reads its handler, and one of audio for who reads that of its data."""
    media = (b"moov", b"trak", b"mdia")
    handler = box(b"hdlr", bytes(4), b"mhlrsoun", bytes(13))
    audio = edit(audio, (*media, b"hdlr"), lambda old: _with(old, 8, b"text"))
    audio = edit(audio, (*media, b"minf"), lambda old: handler + old)
    return edit(audio, (b"moov", *TABLES, b"stsd"), lambda old: old.replace(b"mp4a", b"mett"))


def _with(content: bytes, at: int, change: bytes) -> bytes:
    return content[:at] + change + content[at + len(change) :]


def _element(name: bytes, content: bytes) -> bytes:
    return name + (1 << 56 | len(content)).to_bytes(8) + content
