"""Recognise file formats by their first bytes: the one table of signatures."""

import json
import re
from dataclasses import dataclass

from genlock.domain.media_format import Format, MediaType

_PAGE = re.compile(rb"(<!doctype html|<html|<head|<body|<script|<title|<\?xml|<error)", re.IGNORECASE)
_JSON = re.compile(rb'[{\[]\s*(["{}\[\]\d-]|true|false|null)')
SUFFIX_LENGTH_MAX = 5


class NotMedia(Exception):
    """The server sent an HTML page, a JSON answer or nothing where a file was promised."""


_IMAGE, _VIDEO, _AUDIO = (MediaType.IMAGE,), (MediaType.VIDEO,), (MediaType.AUDIO,)
_VIDEO_OR_AUDIO = (MediaType.VIDEO, MediaType.AUDIO)

JPEG = Format(".jpg", _IMAGE, ("image/jpeg", "image/jpg"))
PNG = Format(".png", _IMAGE, ("image/png",))
WEBP = Format(".webp", _IMAGE)
AVIF = Format(".avif", _IMAGE)
HEIC = Format(".heic", _IMAGE)
BMP = Format(".bmp", _IMAGE)
TIFF = Format(".tiff", _IMAGE)
GIF = Format(".gif", _IMAGE, ("image/gif",))
MP4 = Format(".mp4", _VIDEO_OR_AUDIO, ("video/mp4",))
MOV = Format(".mov", _VIDEO)
WEBM = Format(".webm", _VIDEO_OR_AUDIO)
AVI = Format(".avi", _VIDEO)
MPEG = Format(".mpg", _VIDEO)
FLV = Format(".flv", _VIDEO)
M4A = Format(".m4a", _AUDIO, ("audio/mp4", "audio/x-m4a", "audio/m4a"))
MP3 = Format(".mp3", _AUDIO, ("audio/mpeg", "audio/mp3"))
AAC = Format(".aac", _AUDIO)
OGG = Format(".ogg", _AUDIO)
WAV = Format(".wav", _AUDIO)
FLAC = Format(".flac", _AUDIO)
AMR = Format(".amr", _AUDIO)
PDF = Format(".pdf", (), ("application/pdf",))
ZIP = Format(".zip", (), ("application/zip",))
SEVEN_ZIP = Format(".7z")
GZIP = Format(".gz")
GLB = Format(".glb")
TXT = Format(".txt", (), ("text/plain",))
SVG = Format(".svg", (), ("image/svg+xml",))
SRT = Format(".srt", (), ("application/x-subrip",))
VTT = Format(".vtt", (), ("text/vtt",))
BINARY = Format(".bin")


@dataclass(frozen=True, slots=True)
class Signature:
    """Bytes at one or two fixed positions. Short signatures that also match other files are not `certain`."""

    format: Format
    magic: bytes
    at: int = 0
    #: bytes at position 8: the form of a RIFF file, the brand of an MPEG-4 file
    inner: bytes = b""
    #: which bits of `magic` count; empty: all
    mask: bytes = b""
    certain: bool = True

    def matches(self, head: bytes) -> bool:
        found = head[self.at : self.at + len(self.magic)]
        if self.mask:
            found = bytes(byte & bits for byte, bits in zip(found, self.mask, strict=False))
        return found == self.magic and head[8 : 8 + len(self.inner)] == self.inner


def _riff(form: bytes, meaning: Format) -> Signature:
    return Signature(meaning, b"RIFF", inner=form)


def _brand(brand: bytes, meaning: Format) -> Signature:
    return Signature(meaning, b"ftyp", at=4, inner=brand)


def _uncertain(meaning: Format, magic: bytes, at: int = 0, mask: bytes = b"") -> Signature:
    return Signature(meaning, magic, at=at, mask=mask, certain=False)


#: The first row that matches counts, so a brand stands before the row of all MPEG-4 files.
SIGNATURES: tuple[Signature, ...] = (
    Signature(PNG, b"\x89PNG\r\n\x1a\n"),
    Signature(JPEG, b"\xff\xd8\xff"),
    Signature(GIF, b"GIF87a"),
    Signature(GIF, b"GIF89a"),
    Signature(BMP, b"BM"),
    Signature(TIFF, b"II*\0"),
    Signature(TIFF, b"MM\0*"),
    Signature(MP3, b"ID3"),
    Signature(OGG, b"OggS"),
    Signature(FLAC, b"fLaC"),
    Signature(PDF, b"%PDF-"),
    Signature(ZIP, b"PK\x03\x04"),
    Signature(WEBM, b"\x1a\x45\xdf\xa3"),  # Matroska has the same
    Signature(SEVEN_ZIP, b"7z\xbc\xaf"),
    Signature(GZIP, b"\x1f\x8b\x08"),
    Signature(GLB, b"glTF"),
    _riff(b"WEBP", WEBP),
    _riff(b"WAVE", WAV),
    _riff(b"AVI ", AVI),
    _brand(b"M4A ", M4A),
    _brand(b"M4B ", M4A),
    _brand(b"qt  ", MOV),
    _brand(b"avif", AVIF),
    _brand(b"avis", AVIF),
    _brand(b"heic", HEIC),
    _brand(b"heix", HEIC),
    _brand(b"mif1", HEIC),
    Signature(MP4, b"ftyp", at=4),
    Signature(MP3, b"\xff\xe2", mask=b"\xff\xe6"),  # a frame of MPEG audio, layer III
    _uncertain(PNG, b"\x89PNG"),
    _uncertain(GIF, b"GIF8"),
    *(_uncertain(MOV, box, at=4) for box in (b"moov", b"mdat", b"wide", b"free", b"skip")),
    _uncertain(MPEG, b"\x00\x00\x01\xba"),
    _uncertain(MPEG, b"G"),  # a transport stream
    _uncertain(FLV, b"FLV"),
    _uncertain(AMR, b"#!AM"),
    _uncertain(AAC, b"\xff\xf0", mask=b"\xff\xf6"),  # a frame with a header of its own (ADTS)
    _uncertain(MP3, b"\xff\xe0", mask=b"\xff\xe0"),  # a frame of MPEG audio, any layer
)
_BY_MIME_TYPE = {
    mime_type: media_format
    for media_format in (JPEG, PNG, GIF, MP4, MP3, M4A, PDF, ZIP, TXT, SVG, SRT, VTT)
    for mime_type in media_format.mime_types
}
#: Suffixes that files of a format also have. No player takes a format from them that the content does not show.
_OTHER_SUFFIXES = {
    JPEG: ("jpeg",),
    MP4: ("m4a", "m4v", "mov", "3gp"),
    MOV: ("mp4", "m4v"),
    M4A: ("mp4", "m4b"),
    WEBM: ("mkv", "mka"),
    OGG: ("oga", "opus"),
}
_DEFAULT_SUFFIX = {MediaType.IMAGE: "png", MediaType.VIDEO: "mp4", MediaType.AUDIO: "mp3"}


def recognise(head: bytes, content_type: str = "") -> Format:
    """Return the format of a file by its first bytes or, if they match no signature, by its Content-Type.

    Raises NotMedia.
    """
    mime_type = content_type.partition(";")[0].strip().lower()
    if not head:
        raise NotMedia("the file is empty")
    for signature in SIGNATURES:
        if signature.certain and signature.matches(head):
            return signature.format
    _refuse_page(head, mime_type)
    return _BY_MIME_TYPE.get(mime_type, BINARY)


def likely_format(head: bytes) -> Format | None:
    """Return the format of the first signature that matches, certain or not."""
    return next((signature.format for signature in SIGNATURES if signature.matches(head)), None)


def could_be(head: bytes, media: MediaType) -> bool:
    """Whether a file that begins like this can hold this type of media."""
    return any(media in signature.format.media and signature.matches(head) for signature in SIGNATURES)


def suffix_by_content(head: bytes, media: MediaType, wanted: str) -> str:
    """Return the suffix, without the dot, of a file that could hold this type of media: the wanted one if it fits.

    Players choose some formats by the suffix alone: a second of MP3 with another one plays for minutes.
    """
    formats = (each.format for each in SIGNATURES if media in each.format.media and each.matches(head))
    found = next(formats, BINARY)
    return wanted if wanted in _OTHER_SUFFIXES.get(found, ()) else found.suffix.removeprefix(".")


def _refuse_page(head: bytes, mime_type: str) -> None:
    start = head.lstrip(b"\xef\xbb\xbf \t\r\n")[:512]
    if (mime_type == "text/html" or _PAGE.match(start)) and b"<svg" not in head[:4096]:
        raise NotMedia("it is an HTML page")
    if mime_type.endswith("json") or (_JSON.match(start) and _is_json(head)):
        raise NotMedia("it is a JSON answer")


def _is_json(head: bytes) -> bool:
    """Whether the bytes are JSON up to the position where the head was cut off."""
    try:
        json.JSONDecoder().raw_decode(head.decode("utf-8", "ignore").lstrip("\ufeff \t\r\n"))
    except json.JSONDecodeError as error:
        return error.pos > len(head) // 2 or error.msg.startswith("Unterminated string")
    except (RecursionError, ValueError):  # only JSON is nested this deeply, or has a number with thousands of digits
        return True
    return True


_FAMILIES = {media.value: media for media in MediaType}


def media_type_of(mime_type: str | None) -> MediaType | None:
    """Return the media type that a MIME type names; None for any other file."""
    return _FAMILIES.get((mime_type or "").partition("/")[0])


def choose_suffix(name: str | None, mime_type: str | None, media: MediaType | None) -> str:
    """Return a file's suffix without the dot: from its name, else from its MIME type, else the usual one."""
    for candidate in ((name or "").rpartition(".")[2], (mime_type or "").rpartition("/")[2]):
        if candidate.isalnum() and len(candidate) <= SUFFIX_LENGTH_MAX:
            return candidate.lower()
    return _DEFAULT_SUFFIX[media] if media else "bin"
