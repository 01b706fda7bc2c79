"""Formats of files, and what a file of each can hold."""

from dataclasses import dataclass
from enum import StrEnum


class MediaType(StrEnum):
    IMAGE = "image"
    VIDEO = "video"
    AUDIO = "audio"


@dataclass(frozen=True, slots=True)
class Format:
    suffix: str
    #: what a file of this format can hold
    media: tuple[MediaType, ...] = ()
    #: Content-Type values that mean this format when the bytes match no signature
    mime_types: tuple[str, ...] = ()
