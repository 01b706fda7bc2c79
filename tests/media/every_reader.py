"""Give a file to every parser of media."""

from contextlib import suppress

from genlock.domain.media_format import MediaType
from genlock.media.budget import TooComplex
from genlock.media.duration import duration
from genlock.media.mp4 import read_video_info
from genlock.media.sniff import NotMedia, could_be, likely_format, recognise


def read_media(content: bytes) -> None:
    with suppress(TooComplex):
        found = duration(content)
        assert found is None or found > 0
    read_video_info(content)
    likely_format(content[:12])
    with suppress(NotMedia):
        recognise(content[:65_536])
    for media in MediaType:
        could_be(content[:65_536], media)
