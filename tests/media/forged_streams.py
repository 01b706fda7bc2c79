"""Audio files and WebM films that state a short length, or hide a long one, while players play longer."""

import re
import struct
from collections.abc import Iterator
from itertools import islice

from tests.media.samples import encode_audio, encode_video


def wave(*chunks: tuple[bytes, bytes]) -> bytes:
    body = b"".join(
        struct.pack("<4sI", name, len(content)) + content + b"\0" * (len(content) % 2) for name, content in chunks
    )
    return b"RIFF" + struct.pack("<I", 4 + len(body)) + b"WAVE" + body


def format_chunk(encoding: int, channels: int, frequency: int, bits: int, more: bytes = b"") -> tuple[bytes, bytes]:
    frame = channels * bits // 8
    return b"fmt ", struct.pack("<HHIIHH", encoding, channels, frequency, frequency * frame, frame, bits) + more


def forged_waves() -> Iterator[tuple[str, bytes]]:
    samples = bytes(range(256)) * 375  # twelve seconds at 8 kHz
    slow, fast = format_chunk(1, 1, 8000, 8), format_chunk(1, 8, 96_000, 32)
    yield "two formats", wave(slow, fast, (b"data", samples))
    yield "two formats, slow last", wave(fast, slow, (b"data", samples))
    yield "wide logarithmic samples", wave(format_chunk(7, 1, 8000, 32), (b"data", samples))
    mp3 = encode_audio("mp3", "libmp3lame", "s16p", 24_000)
    extension = struct.pack("<HHIH", 22, 16, 4, 0x55) + bytes.fromhex("000000001000800000aa00389b71")
    yield "an extended format", wave(format_chunk(0xFFFE, 2, 48_000, 16, extension), (b"data", mp3))
    yield "MP3 as samples", wave(format_chunk(1, 2, 48_000, 16), (b"data", mp3))
    aac = encode_audio("adts", "aac", "fltp")
    yield "AAC as samples", wave(format_chunk(1, 2, 48_000, 16), (b"data", aac))
    ac3 = encode_audio("ac3", "ac3", "fltp")
    yield "AC-3 as samples", wave(format_chunk(1, 2, 192_000, 16), (b"data", ac3))
    eac3 = encode_audio("eac3", "eac3", "fltp")
    yield "E-AC-3 as samples", wave(format_chunk(1, 2, 192_000, 16), (b"data", eac3))
    loas = encode_audio("latm", "aac", "fltp")
    yield "LOAS as samples", wave(format_chunk(1, 2, 48_000, 16), (b"data", loas))
    yield (
        "a frame of another size",
        wave((b"fmt ", struct.pack("<HHIIHH", 1, 1, 8000, 8000, 1, 64)), (b"data", samples)),
    )
    yield (
        "a byte rate that lies",
        wave((b"fmt ", struct.pack("<HHIIHH", 1, 1, 8000, 800_000, 1, 8)), (b"data", samples)),
    )
    yield "a short data chunk", wave(slow, (b"data", samples[:800])) + samples


def forged_mp3() -> Iterator[tuple[str, bytes]]:
    whole = encode_audio("mp3", "libmp3lame", "s16p", 24_000)
    start = whole.index(b"\xff\xf3")
    frames = whole[start:]
    yield "a large frame first", b"\xff\xfb\xe8\x00" + frames
    yield "frames in a tag that is none", b"ID3\x04\0\0\x80\x80\x80\x80" + frames
    yield "a tag with frames behind its footer", b"ID3\x04\0\x10\0\0\0\x10" + b"\0" * 16 + frames
    yield "two kinds of frames", (b"\xff\xfb\xe8\x00" + bytes(1436)) * 20 + frames
    xing = bytearray(whole)
    at = max(whole.find(b"Xing"), whole.find(b"Info"))
    struct.pack_into(">I", xing, at + 8, 100_000)
    yield "a large number of frames stated", bytes(xing)
    struct.pack_into(">I", xing, at + 8, 10)
    yield "a small number of frames stated", bytes(xing)
    yield "zeros first", bytes(300) + frames
    second = whole.index(whole[start : start + 2], start + 2)  # the first frame states the length
    yield "a length that players estimate from zeros", b"ID3\3" + bytes(1_000_006) + whole[second:]
    yield "a transport stream between the headers", between_headers(encode_audio("mpegts", "aac", "fltp"))


def between_headers(stream: bytes) -> bytes:
    """Return frames of MP3 of which all but the header are packets of a transport stream."""
    packets = [stream[at : at + 188] for at in range(0, len(stream), 188)]
    frame, header, found = 1440, b"\xff\xfb\xe8\x00", bytearray()
    while packets:
        start = len(found)
        if (start - 2) % frame <= frame - 188 - 4 and start:
            found += packets.pop(0)
        else:  # the next header is in this packet, which players ignore
            found += b"\x47\x1f\xff\x10".ljust(188, b"\xff")
    for at in range(2, len(found) - 4, frame):
        found[at : at + 4] = header
    return bytes(found[2:])


def forged_ogg() -> Iterator[tuple[str, bytes]]:
    voice = encode_audio("ogg", "libopus", "s16")
    last = bytearray(voice)
    struct.pack_into("<q", last, voice.rindex(b"OggS") + 6, 48_000 * 60)
    yield "a late last page", bytes(last)
    yield "pages that end too early", _with_early_pages(voice)
    other = voice.replace(voice[14:18], b"\1\2\3\4")
    yield "two streams, one after the other", voice + other
    yield "the same stream twice", voice + voice
    yield "pages in a damaged page", _in_a_damaged_page(voice)


def _with_early_pages(voice: bytes) -> bytes:
    """Let the first page of packets end at its beginning, so that players begin a second before zero."""
    _, at = (found.start() for found in islice(re.finditer(b"OggS", voice), 1, 3))
    end = voice.index(b"OggS", at + 4)
    page = bytearray(voice[at:end])
    struct.pack_into("<q", page, 6, 5)
    struct.pack_into("<I", page, 22, 0)
    struct.pack_into("<I", page, 22, _page_check_sum(page))
    return voice[:at] + bytes(page) + voice[end:]


def _page_check_sum(page: bytes | bytearray) -> int:
    value = int.from_bytes(page) << 32
    while value.bit_length() > 32:
        value ^= 0x104C11DB7 << value.bit_length() - 33
    return value


def _in_a_damaged_page(voice: bytes) -> bytes:
    """Put all pages but the headers into one page with a wrong check sum, as one packet of 20 ms."""
    start = voice.index(b"OggS", voice.index(b"OpusTags"))
    packet = b"\x08" + voice[start:]
    lacing = bytes([255] * (len(packet) // 255) + [len(packet) % 255])
    page = struct.pack("<4sBBqIIIB", b"OggS", 0, 0, 960, *struct.unpack_from("<I", voice, 14), 2, 1, len(lacing))
    return voice[:start] + page + lacing + packet


def forged_webm() -> Iterator[tuple[str, bytes]]:
    film = encode_video("webm", "libvpx")
    scale = bytearray(film)
    at = film.index(b"\x2a\xd7\xb1") + 4
    scale[at : at + 3] = (5_000_000).to_bytes(3)
    yield "a larger scale", bytes(scale)
    longer = bytearray(film)
    struct.pack_into(">d", longer, film.index(b"\x44\x89\x88") + 3, 60_000.0)
    yield "a longer stated duration", bytes(longer)
    yield "two films", film + film
    with_group = film + b"\x1f\x43\xb6\x75\x8e\xe7\x81\x00\xa0\x89\xa1\x84\x81\x2e\xe0\x00\x9b\x81\xff"
    yield "a block after the end", with_group
    speed = b"\x23\x31\x4f\x84" + struct.pack(">f", 5.0)
    yield "a track with its own scale", _inserted(film, b"\x83\x81\x01", speed)
    yield from _hidden_clusters(film)
    yield "a header behind the clusters", _header_last(encode_audio("matroska", "libmp3lame", "s16p"))


def _header_last(film: bytes) -> bytes:
    """Move the header to the end, behind a gap: players that do not find it estimate the length from the bit rate."""
    start, end = film.rindex(b"\x15\x49\xa9\x66"), film.rindex(b"\x16\x54\xae\x6b")  # before: the table of contents
    segment = film.index(b"\x18\x53\x80\x67")
    head, info, rest = film[:segment], film[start:end], film[end:]
    return head + _element(b"\x18\x53\x80\x67", rest + _element(b"\xec", bytes(2_000_000)) + info)


def _hidden_clusters(film: bytes) -> Iterator[tuple[str, bytes]]:
    """Yield films of one second in which players find the clusters only after an element that they cannot read."""
    start = film.index(b"\x1f\x43\xb6\x75")
    head, clusters = bytearray(film[:start]), film[start:]
    size = head.index(b"\x18\x53\x80\x67") + 4
    head[size : size + 8] = b"\x01" + b"\xff" * 7  # up to the end of the file
    struct.pack_into(">d", head, head.index(b"\x44\x89\x88") + 3, 1000.0)
    block = b"\x81\0\0\0" + clusters
    for unreadable in (_element(b"\xfb", bytes(9)), _element(b"\x75\xa1", bytes(4))):
        group = _element(b"\xa0", unreadable + _element(b"\xa1", block))
        yield f"clusters in a block after {unreadable!r}", bytes(head) + _cluster(group)
    contents = _element(b"\x11\x4d\x9b\x74", bytes(4) + clusters)
    yield "clusters in a table of contents", bytes(head) + contents + _cluster(_element(b"\xa3", b"\x81\0\0\x80x"))


def _cluster(blocks: bytes) -> bytes:
    return _element(b"\x1f\x43\xb6\x75", _element(b"\xe7", b"\0") + blocks)


def _element(name: bytes, content: bytes) -> bytes:
    return name + (1 << 56 | len(content)).to_bytes(8) + content


def _inserted(film: bytes, after: bytes, addition: bytes) -> bytes:
    """Insert an element into the first track, and make the elements around it longer (their sizes have eight bytes)."""
    at = film.index(after) + len(after)
    changed = bytearray(film[:at] + addition + film[at:])
    for name in (b"\x16\x54\xae\x6b", b"\xae"):
        place = film.index(name, film.index(b"\x16\x54\xae\x6b")) + len(name)
        if changed[place] == 1:
            size = int.from_bytes(changed[place + 1 : place + 8]) + len(addition)
            changed[place + 1 : place + 8] = size.to_bytes(7)
        else:
            changed[place] += len(addition)
    return bytes(changed)
