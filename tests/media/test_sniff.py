"""The format of a file is recognised by its first bytes, then by its Content-Type."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from genlock.channels.telegram.file_kinds import FileKind, kind_of
from genlock.domain.media_format import MediaType
from genlock.media.mp4 import read_video_info
from genlock.media.photo import photo_fits
from genlock.media.sniff import NotMedia, choose_suffix, could_be, media_type_of, recognise, suffix_by_content
from genlock.sandbox.kie.media import make_audio
from tests.media.samples import image, short_video

FTYP = b"\0\0\0\x18ftyp"


@pytest.mark.parametrize(
    ("head", "kind", "suffix"),
    [
        (image, FileKind.PHOTO, ".png"),
        (lambda: image(form="JPEG"), FileKind.PHOTO, ".jpg"),
        (lambda: image(form="WEBP"), FileKind.PHOTO, ".webp"),
        (lambda: image(form="BMP"), FileKind.PHOTO, ".bmp"),
        (lambda: image(form="TIFF"), FileKind.PHOTO, ".tiff"),
        (lambda: image(form="GIF"), FileKind.ANIMATION, ".gif"),
        (short_video, FileKind.VIDEO, ".mp4"),
        (FTYP + b"qt  ", FileKind.VIDEO, ".mov"),
        (FTYP + b"M4A ", FileKind.AUDIO, ".m4a"),
        (FTYP + b"avif", FileKind.PHOTO, ".avif"),
        (FTYP + b"heic", FileKind.DOCUMENT, ".heic"),
        (lambda: make_audio(0), FileKind.AUDIO, ".mp3"),
        (b"\xff\xfb\x90\x64" + b"\0" * 100, FileKind.AUDIO, ".mp3"),
        (b"ID3\x04" + b"\0" * 100, FileKind.AUDIO, ".mp3"),
        (b"OggS\0\x02", FileKind.AUDIO, ".ogg"),
        (b"fLaC\0", FileKind.AUDIO, ".flac"),
        (b"RIFF\0\0\0\0WAVEfmt ", FileKind.AUDIO, ".wav"),
        (b"RIFF\0\0\0\0AVI LIST", FileKind.DOCUMENT, ".avi"),
        (b"\x1a\x45\xdf\xa3", FileKind.DOCUMENT, ".webm"),
        (b"%PDF-1.4", FileKind.DOCUMENT, ".pdf"),
        (b"PK\x03\x04", FileKind.DOCUMENT, ".zip"),
        (b"glTF\x02", FileKind.DOCUMENT, ".glb"),
        (b"<svg xmlns='http://www.w3.org/2000/svg'></svg>", FileKind.DOCUMENT, ".bin"),
        (b"{not json at all", FileKind.DOCUMENT, ".bin"),
        (b"[Verse 1]\nOh", FileKind.DOCUMENT, ".bin"),
    ],
)
def test_the_first_bytes_decide_the_format_whatever_the_content_type(
    head: bytes | Callable[[], bytes], kind: FileKind, suffix: str
) -> None:
    first_bytes = head() if callable(head) else head
    for content_type in ("application/octet-stream", "image/x-unheard-of", ""):
        found = recognise(first_bytes, content_type)
        assert (kind_of(found), found.suffix) == (kind, suffix)


@pytest.mark.parametrize(
    ("content_type", "kind", "suffix"),
    [
        ("text/plain; charset=utf-8", FileKind.DOCUMENT, ".txt"),
        ("AUDIO/MPEG", FileKind.AUDIO, ".mp3"),
        ("video/mp4", FileKind.VIDEO, ".mp4"),
        ("application/x-subrip", FileKind.DOCUMENT, ".srt"),
        ("font/woff", FileKind.DOCUMENT, ".bin"),
    ],
)
def test_the_content_type_decides_if_the_bytes_match_no_signature(
    content_type: str, kind: FileKind, suffix: str
) -> None:
    found = recognise(b"\x01\x02 nothing known", content_type)
    assert (kind_of(found), found.suffix) == (kind, suffix)


@pytest.mark.parametrize(
    ("head", "content_type"),
    [
        (b"", "image/png"),
        (b"\xef\xbb\xbf\n<!DOCTYPE HTML>", "image/png"),
        (b"<HTML>", ""),
        (b"anything", "text/html; charset=utf-8"),
        (b"<?xml version='1.0'?><Error/>", ""),
        (b'{"code":404,"msg":"no"}', ""),
        (b'[{"a": 1}]', ""),
        (b'  {"data": "' + b"x" * 60_000, ""),
        (b"null", "application/json"),
        (b"{}", "application/problem+json"),
        (b"[" * 60_000, ""),
        (b'{"a":' * 12_000, ""),
        (b'{"a":' + b"9" * 5_000 + b"}", ""),
    ],
)
def test_html_pages_json_answers_and_empty_files_are_not_media(head: bytes, content_type: str) -> None:
    with pytest.raises(NotMedia):
        recognise(head, content_type)


@given(st.binary(min_size=1, max_size=600), st.text(max_size=30))
def test_any_bytes_have_a_format_or_are_not_media(head: bytes, content_type: str) -> None:
    try:
        found = recognise(head, content_type)
    except NotMedia:
        return
    assert found.suffix.startswith(".")
    photo_fits(head)
    read_video_info(head)


@pytest.mark.parametrize(
    ("head", "media", "expected"),
    [
        (b"\x89PNG\r\n\x1a\n", MediaType.IMAGE, True),
        (b"\xff\xd8\xff\xe0", MediaType.IMAGE, True),
        (b"RIFF\0\0\0\0WEBP", MediaType.IMAGE, True),
        (b"RIFF\0\0\0\0WAVE", MediaType.IMAGE, False),
        (FTYP + b"heic", MediaType.IMAGE, True),
        (FTYP + b"isom", MediaType.IMAGE, False),
        (b"RIFF\0\0\0\0WAVE", MediaType.AUDIO, True),
        (b"OggS\0", MediaType.AUDIO, True),
        (b"\xff\xfb\x90", MediaType.AUDIO, True),
        (b"\xff\xfd\x90", MediaType.AUDIO, True),
        (b"#!AMR\n", MediaType.AUDIO, True),
        (FTYP + b"isom", MediaType.AUDIO, True),
        (b"\x1a\x45\xdf\xa3", MediaType.AUDIO, True),
        (FTYP + b"isom", MediaType.VIDEO, True),
        (b"\0\0\0\x08wide", MediaType.VIDEO, True),
        (b"G\x40\x11\x10", MediaType.VIDEO, True),
        (b"FLV\x01", MediaType.VIDEO, True),
        (b"\x00\x00\x01\xba", MediaType.VIDEO, True),
        (b"RIFF\0\0\0\0AVI ", MediaType.VIDEO, True),
        (b"<html>", MediaType.IMAGE, False),
        (b"<html>", MediaType.VIDEO, False),
        (b"", MediaType.AUDIO, False),
        (b"", MediaType.IMAGE, False),
        (b"MZ\x90\0", MediaType.AUDIO, False),
    ],
)
def test_a_file_from_a_user_is_accepted_if_its_first_bytes_fit_the_media_type(
    head: bytes, media: MediaType, *, expected: bool
) -> None:
    assert could_be(head, media) is expected


def test_a_short_signature_does_not_decide_the_format() -> None:
    assert recognise(b"Good morning", "text/plain").suffix == ".txt"
    assert recognise(b"FLV is a format", "text/plain").suffix == ".txt"


def test_the_media_type_and_the_suffix_come_from_the_name_and_the_mime_type() -> None:
    assert media_type_of("video/quicktime") is MediaType.VIDEO
    assert media_type_of("application/pdf") is None
    assert media_type_of(None) is None
    assert choose_suffix("Holiday.JPEG", "image/png", MediaType.IMAGE) == "jpeg"
    assert choose_suffix("no suffix", "image/png", MediaType.IMAGE) == "png"
    assert choose_suffix(None, None, MediaType.AUDIO) == "mp3"
    assert choose_suffix(None, None, None) == "bin"


@pytest.mark.parametrize(
    ("head", "media", "wanted", "suffix"),
    [
        (b"\xff\xfb\x90\0", MediaType.AUDIO, "tco", "mp3"),
        (b"ID3\x04", MediaType.AUDIO, "flac", "mp3"),
        (b"\xff\xf1\x50\x80", MediaType.AUDIO, "mp3", "aac"),
        (FTYP + b"isom", MediaType.AUDIO, "m4a", "m4a"),
        (FTYP + b"isom", MediaType.VIDEO, "avi", "mp4"),
        (b"\x1a\x45\xdf\xa3", MediaType.VIDEO, "mkv", "mkv"),
        (b"OggS\0", MediaType.AUDIO, "oga", "oga"),
        (b"\x89PNG\r\n\x1a\n", MediaType.IMAGE, "jpg", "png"),
        (b"\xff\xd8\xff", MediaType.IMAGE, "jpeg", "jpeg"),
        (b"<html>", MediaType.IMAGE, "jpg", "bin"),
    ],
)
def test_the_suffix_of_a_file_for_a_provider_agrees_with_its_content(
    head: bytes, media: MediaType, wanted: str, suffix: str
) -> None:
    assert suffix_by_content(head, media, wanted) == suffix
