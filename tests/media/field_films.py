"""Films of H.264 whose pictures are two fields each: the encoder of the tests does not make any."""

import re
import struct

from tests.media.boxes import box


def number(value: int) -> str:
    """Return the bits of an unsigned Exp-Golomb code."""
    bits = f"{value + 1:b}"
    return "0" * (len(bits) - 1) + bits


def unit(head: int, bits: str, more: bytes = b"") -> bytes:
    """Return a unit of H.264 that ends with a one, and that has no start code inside."""
    bits += "" if more else "1"
    bits += "0" * (-len(bits) % 8)
    body = int(bits, 2).to_bytes(len(bits) // 8) + more
    return bytes([head]) + re.sub(rb"\0\0(?=[\0-\3])", b"\0\0\3", body)


def parameters(*, tick: tuple[int, int] | None = None, frame_number_bits: int = 4, order_bits: int = 0) -> bytes:
    """Return parameters of a picture of 16 by 32 pixels: each of its fields is one macroblock."""
    order = number(0) + number(order_bits - 4) if order_bits else number(2)
    bits = (
        f"{66:08b}{0:08b}{30:08b}"
        + number(0)
        + number(frame_number_bits - 4)
        + order
        + number(1)
        + "0"
        + number(0)
        + number(0)
    )
    bits += "0" + "0" + "1" + "0"  # fields are allowed; no mixed pictures; direct prediction; nothing is cut off
    if tick is None:
        return unit(0x67, bits + "0")
    return unit(0x67, bits + "1" + "0000" + "1" + f"{tick[0]:032b}{tick[1]:032b}" + "1" + "0000")


PICTURE_PARAMETERS = unit(0x68, number(0) * 2 + "00" + number(0) * 3 + "000" + number(0) * 3 + "100")


def key_field(*, bottom: int = 0) -> bytes:
    """Return a field of one macroblock without compression."""
    header = number(0) + number(7) + number(0) + "0000" + f"1{bottom}" + number(0) + "00" + number(0) + number(1)
    bits = header + number(25)
    bits += "0" * (-len(bits) % 8)
    return unit(0x65, bits, bytes([128]) * 384 + b"\x80")


def skipped_field(frame_number: int = 0, *, bottom: int = 1, reference: int = 0x60) -> bytes:
    """Return a field that repeats the one before."""
    header = number(0) + number(5) + number(0) + f"{frame_number:04b}" + f"1{bottom}"
    header += "0" + "0" + ("0" if reference else "") + number(0) + number(1)
    return unit(1 | reference, header + number(1))


def part(
    place: int, *, frame_number: int = 0, reference: int = 0x60, key: int | None = None, order: str = "", form: int = 0
) -> bytes:
    """Return a slice of a picture without fields that begins at a macroblock; its content is none."""
    header = number(place) + number(5) + number(form) + f"{frame_number:04b}" + "0"
    return unit(
        (1 if key is None else 5) | reference, header + ("" if key is None else number(key)) + order, b"\x80" * 8
    )


def sample(*units: bytes) -> bytes:
    return b"".join(struct.pack(">I", len(unit_)) + unit_ for unit_ in units)


def configuration(*sequence_parameters: bytes) -> bytes:
    lists = bytes([0xE0 | len(sequence_parameters)])
    lists += b"".join(struct.pack(">H", len(entry)) + entry for entry in sequence_parameters)
    return b"\x01\x42\x00\x1e\xff" + lists + b"\x01" + struct.pack(">H", len(PICTURE_PARAMETERS)) + PICTURE_PARAMETERS


def film(samples: list[bytes], settings: bytes) -> bytes:
    """Return a film of 25 samples in a second."""
    count = len(samples)
    entry = bytes(6) + struct.pack(">H16xHHIIIH32sHh", 1, 16, 32, 72 << 16, 72 << 16, 0, 1, b"", 24, -1)
    tables = (
        box(b"stsd", struct.pack(">II", 0, 1), box(b"avc1", entry, box(b"avcC", settings))),
        box(b"stts", struct.pack(">IIII", 0, 1, count, 1)),
        box(b"stsz", struct.pack(">III", 0, 0, count), *(struct.pack(">I", len(content)) for content in samples)),
        box(b"stsc", struct.pack(">IIIII", 0, 1, 1, count, 1)),
        box(b"stco", struct.pack(">III", 0, 1, 24)),
    )
    media = (
        box(b"mdhd", struct.pack(">IIIIII", 0, 0, 0, 25, count, 0)),
        box(b"hdlr", struct.pack(">II4s13x", 0, 0, b"vide")),
        box(b"minf", box(b"vmhd", struct.pack(">I8x", 1)), box(b"stbl", *tables)),
    )
    movie = box(b"mvhd", struct.pack(">IIIIII", 0, 0, 0, 25, count, 1 << 16), bytes(76))
    header = box(
        b"tkhd", struct.pack(">IIIIII", 7, 0, 0, 1, 0, count), bytes(52), struct.pack(">II", 16 << 16, 32 << 16)
    )
    index = box(b"moov", movie, box(b"trak", header, box(b"mdia", *media)))
    return box(b"ftyp", b"isom", bytes(4)) + box(b"mdat", b"".join(samples)) + index
