"""Damaged and forged variants of real files, made to reach deep into the parsers."""

import struct
from collections.abc import Iterator, Sequence
from functools import cache
from random import Random

from tests.media.forgeries import forgeries
from tests.media.samples import encode_audio, encode_video, image, short_video

#: numbers at which sizes and counts go wrong
_NUMBERS = (0, 1, 7, 8, 15, 16, 127, 128, 255, 256, 2**15, 2**16 - 1, 2**24, 2**31 - 1, 2**31, 2**32 - 1)
#: names and marks that the parsers look for
_MARKS = (
    b"moov", b"trak", b"mdia", b"minf", b"stbl", b"stts", b"ctts", b"stsz", b"stsc", b"stco", b"co64", b"elst", b"edts",
    b"mvhd", b"mdhd", b"tkhd", b"mdat", b"free", b"udta", b"moof", b"esds", b"data", b"fmt ", b"OggS", b"OpusHead",
    b"traf", b"tfhd", b"tfdt", b"trun", b"sidx", b"trex", b"tfra", b"fLaC",
    b"ID3", b"\xff\xfb", b"\xff\xf3", b"Xing", b"VBRI", b"\x1f\x43\xb6\x75", b"\x15\x49\xa9\x66",
    b"\xa3", b"\xa0", b"\xec", b"IDAT", b"PLTE", b"IEND", b"\xff\xda", b"\xff\xc2", b"ANMF", b"VP8X",
)  # fmt: skip


@cache
def media_seeds() -> tuple[bytes, ...]:
    """Return real videos and audio files, and forged ones."""
    real = (
        encode_video("mp4", "libx264"), encode_video("mov", "libx264"), encode_video("webm", "libvpx"),
        encode_video("matroska", "libx264"), encode_video("mp4", "libx264", fragments=True), short_video(),
        encode_audio("mp3", "libmp3lame", "s16p", 24_000), encode_audio("wav", "pcm_s16le", "s16")[:50_000],
        encode_audio("ipod", "aac", "fltp"), encode_audio("ogg", "libopus", "s16"),
        encode_audio("webm", "libopus", "s16"), encode_audio("flac", "flac", "s16"),
        encode_audio("adts", "aac", "fltp"),
    )  # fmt: skip
    return (*real * 6, *(content for _, content in forgeries()))


@cache
def image_seeds() -> tuple[bytes, ...]:
    plain = [image((40, 30), form=form) for form in ("PNG", "JPEG", "WEBP", "BMP", "TIFF", "GIF", "AVIF")]
    passes = image((40, 30), form="JPEG", progressive=True)
    return (*plain, passes, image((40, 30), form="TIFF", compression="tiff_lzw"))


def mutated(seeds: tuple[bytes, ...], seed: int, count: int) -> Iterator[bytes]:
    """Yield changed files, the same ones for the same seed."""
    rng = Random(seed)
    for _ in range(count):
        content = bytearray(rng.choice(seeds))
        for _ in range(rng.choice((1, 1, 1, 2, 3, 8))):
            mutate(content, seeds, rng)
        yield bytes(content)


def mutate(content: bytearray, seeds: Sequence[bytes], rng: Random) -> None:
    """Damage a file in one place."""
    # Headers are at the beginning or, in some formats, at the end.
    size = max(1, len(content))
    place = rng.choice((rng.randrange(size), rng.randrange(min(size, 2000)), size - 1 - rng.randrange(min(size, 3000))))
    match rng.randrange(7):
        case 0:
            content[place : place + 1] = bytes([rng.randrange(256)])
        case 1:
            content[place : place + 4] = struct.pack(rng.choice((">I", "<I")), rng.choice(_NUMBERS))
        case 2:
            mark = rng.choice(_MARKS)
            content[place : place + len(mark)] = mark
        case 3:
            del content[place : place + rng.choice((1, 4, 8, 100, 1000))]
        case 4:
            start = rng.randrange(size)
            repeated = content[start : start + rng.choice((4, 8, 32, 500, 4000))] * rng.choice((1, 1, 2, 50))
            content[place:place] = repeated
        case 5:
            other = rng.choice(seeds)
            start = rng.randrange(len(other))
            content[place : place + rng.choice((0, 64))] = other[start : start + rng.choice((8, 64, 1000))]
        case _:
            found = content.find(rng.choice(_MARKS))
            if found >= 4:
                content[found - 4 : found] = struct.pack(">I", rng.choice((*_NUMBERS, len(content))))
