"""Measure how long a WebM or Matroska file plays."""

import struct
from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from genlock.media.aac import Aac, frames_seconds, read_configuration
from genlock.media.budget import Budget, require
from genlock.media.mapped_file import Content
from genlock.media.mp3 import frame_at
from genlock.media.nal_pictures import H264Stream, HevcStream
from genlock.media.ogg import opus_seconds
from genlock.media.shown_pictures import PICTURES_PER_SECOND_MAX, check_stated, shown_in_av1, shown_in_vp9

_HEADER, _SEGMENT, _SEEK_HEAD, _VOID, _CHECKSUM = 0x1A45DFA3, 0x18538067, 0x114D9B74, 0xEC, 0xBF
_INFO, _TRACKS, _CUES, _TAGS, _CLUSTER = 0x1549A966, 0x1654AE6B, 0x1C53BB6B, 0x1254C367, 0x1F43B675
_SEEK, _SEEK_NAME, _SEEK_POSITION = 0x4DBB, 0x53AB, 0x53AC
_SCALE, _DURATION = 0x2AD7B1, 0x4489
#: identifiers, date, title and programs
_INFO_IGNORED = (0x73A4, 0x7384, 0x4461, 0x7BA9, 0x4D80, 0x5741, _VOID, _CHECKSUM)
_TRACK, _NUMBER, _CODEC, _CONFIGURATION, _FRAME_LENGTH = 0xAE, 0xD7, 0x86, 0x63A2, 0x23E383
_AUDIO, _SAMPLING_RATE = 0xE1, 0xB5
#: a track begins earlier by its delay: encoders of audio state a few hundredths of a second
_DELAY, _DELAY_SECONDS_MAX = 0x56AA, 0.3
#: a track's own time scale, its offset, and encodings of its frames: they change when frames are shown
_TRACK_REFUSED = (0x23314F, 0x537F, 0x6D80, 0x6624)
_TIME, _BLOCK, _SIMPLE_BLOCK, _GROUP, _LENGTH = 0xE7, 0xA1, 0xA3, 0xA0, 0x9B
_CLUSTER_IGNORED = (0xAB, 0xA7, _VOID, _CHECKSUM)
#: references, padding, additions
_GROUP_IGNORED = (0xFB, 0xFA, 0x75A2, 0x75A1, _VOID, _CHECKSUM)
_VIDEO: dict[bytes, Callable[[bytes], int]] = {b"V_VP8": lambda _: 1, b"V_VP9": shown_in_vp9, b"V_AV1": shown_in_av1}
_STREAMS: dict[bytes, type[H264Stream | HevcStream]] = {
    b"V_MPEG4/ISO/AVC": H264Stream,
    b"V_MPEGH/ISO/HEVC": HevcStream,
}
#: players take a file with another type, or a longer header, for another format
_HEADER_BYTES_MAX, _TYPES = 256, (b"webm", b"matroska")
_CONFIGURATION_MAX = 65_536
_OPUS, _AAC, _MP3 = b"A_OPUS", b"A_AAC", b"A_MPEG/L3"
_LACING = 6
#: a film whose pictures have a constant rate moves none of them
MOVED_SECONDS_MAX = 0.5
#: the limit of the standards
REORDERED_MAX = 16
_NUMBER_BYTES_MAX = 8


class Element(NamedTuple):
    name: int
    start: int
    #: None if the size is not stated: the element ends where its parent ends or the next of its level begins
    end: int | None


@dataclass(slots=True)
class _Track:
    codec: bytes
    #: nanoseconds
    frame_length: int
    #: counts the pictures of a block; None if the track is not a video
    shown_in: Callable[[bytes], int] | None = None
    #: reads the blocks of a codec that states how long a picture is shown
    stream: H264Stream | HevcStream | None = None
    #: when the pictures of a video are shown, in seconds and in this order
    times: list[float] = field(default_factory=list)
    #: how long audio plays that states it in each block
    decoded: float = 0.0
    #: how AAC is coded, and where its frames are
    aac: Aac | None = None
    positions: "array[int]" = field(default_factory=lambda: array("Q"))
    sizes: "array[int]" = field(default_factory=lambda: array("Q"))

    def add_picture(self, seconds: float) -> None:
        """Note when a picture is shown. Only some codecs store a picture after a few that are shown later."""
        at = bisect_right(self.times, seconds)
        later = len(self.times) - at
        require(seconds >= 0 and later <= (REORDERED_MAX if self.stream else 0), "times that are not in order")
        self.times.insert(at, seconds)


@dataclass(slots=True)
class _Film:
    has_header: bool = False
    scale: int = 1_000_000
    #: in units of the scale
    stated: float = 0.0
    end: float = 0.0
    tracks: dict[int, _Track] = field(default_factory=dict)
    #: where the table of contents names other elements
    references: list[tuple[int, int]] = field(default_factory=list)


def read_duration(content: Content, budget: Budget) -> float:
    """Return the duration in the header or the end of the last block, whichever is longer."""
    header = _element(content, 0, len(content))
    require(header.name == _HEADER and header.end, "no header")
    assert header.end is not None
    stated = _whole(content, header, _HEADER_BYTES_MAX)
    require(any(each in stated for each in _TYPES), "another type of file")
    segment = _element(content, header.end, len(content))
    require(segment.name == _SEGMENT and segment.end in (None, len(content)), "no segment, or several")
    film = _Film()
    found = _read_segment(content, segment.start, film, budget)
    _nothing_hidden(content, film, found, budget)
    is_stated = film.stated or all(track.codec != _MP3 for track in film.tracks.values())
    require(is_stated, "no stated duration, and a bit rate by which players estimate it")
    end = film.end * film.scale / 1e9
    decoded = (max(_played(content, track), _shown_until(track, end)) for track in film.tracks.values())
    return max(film.stated * film.scale / 1e9, end, *decoded)


def _played(content: Content, track: _Track) -> float:
    """Return how long the audio of a track plays, whatever times its blocks have."""
    if track.aac is None or not track.sizes:
        return track.decoded
    return frames_seconds(content, track.positions, track.sizes, track.aac)


def _shown_until(track: _Track, end: float) -> float:
    """Return when a video ends if each picture is shown for as long as stated, and moved if two are too close."""
    stated = track.stream.picture_seconds if track.stream else 0.0
    check_stated(stated, len(track.times), end)
    length = max(track.frame_length / 1e9 or stated, 1 / PICTURES_PER_SECOND_MAX)
    until = 0.0
    for seconds in track.times:
        # Players of codecs that reorder pictures may move the others further.
        require(track.stream is None or until - seconds <= MOVED_SECONDS_MAX, "times that contradict the stated rate")
        until = max(until, seconds) + length
    return until


def _read_segment(content: Content, start: int, film: _Film, budget: Budget) -> list[Element]:
    """Read the elements of the segment; return those of its first level."""
    found: list[Element] = []
    while start < len(content):
        budget.spend()
        element = _element(content, start, len(content))
        found.append(element)
        if element.name == _CLUSTER:
            # Players that find clusters first do not look for what comes behind them, such as the duration.
            require(film.has_header and film.tracks, "a cluster before the header or the tracks")
            start = _read_cluster(content, element, film, budget)
            continue
        require(element.end is not None, "an element without a size")
        assert element.end is not None
        if element.name == _INFO:
            _read_info(content, element, film, budget)
        elif element.name == _TRACKS:
            _read_tracks(content, element, film, budget)
        elif element.name == _SEEK_HEAD:
            film.references += _references(content, element, budget)
        else:
            require(element.name in (_CUES, _TAGS, _VOID, _CHECKSUM), f"an element {element.name:x}")
        start = element.end
    return found


def _nothing_hidden(content: Content, film: _Film, elements: list[Element], budget: Budget) -> None:
    """Check that no other header or cluster is in the file, not even in a block.

    Some players follow references, and all search for the next cluster after an element that they cannot read.
    """
    for name in (_SEGMENT, _INFO, _TRACKS, _CLUSTER):
        expected = 1 if name == _SEGMENT else sum(element.name == name for element in elements)
        require(name == _CLUSTER or expected == 1, "a header that is missing or repeated")
        count = _count(content, name.to_bytes(4), film.references, budget)
        require(count == expected, "a header or a cluster in a place where it is not read here")


def _count(content: Content, mark: bytes, skipped: list[tuple[int, int]], budget: Budget) -> int:
    """Count how often bytes occur outside of some ranges, which are in order."""
    position, count, following = -1, 0, 0
    while (position := content.find(mark, position + 1)) >= 0:
        budget.spend()
        while following < len(skipped) and skipped[following][1] <= position:
            following += 1
        count += following == len(skipped) or skipped[following][0] > position
    return count


def _references(content: Content, head: Element, budget: Budget) -> Iterator[tuple[int, int]]:
    """Yield where a table of contents names elements."""
    for entry, _ in _children(content, head, budget):
        require(entry.name in (_SEEK, _VOID, _CHECKSUM), f"an element {entry.name:x}")
        if entry.name == _SEEK:
            inside = [child for child, _ in _children(content, entry, budget)]
            names = sorted(child.name for child in inside)
            require(names == [_SEEK_NAME, _SEEK_POSITION], "a reference of another form")
            yield from ((child.start, child.start + 4) for child in inside if child.name == _SEEK_NAME)


def _read_info(content: Content, info: Element, film: _Film, budget: Budget) -> None:
    scales = lengths = 0
    film.has_header = True
    for element, body in _children(content, info, budget):
        if element.name == _SCALE:
            scales, film.scale = scales + 1, _unsigned(body)
        elif element.name == _DURATION:
            lengths, film.stated = lengths + 1, _float(body)
        else:
            require(element.name in _INFO_IGNORED, f"an element {element.name:x}")
    require(scales <= 1 and lengths <= 1 and film.scale and film.stated >= 0, "a header with several times")


def _read_tracks(content: Content, tracks: Element, film: _Film, budget: Budget) -> None:
    for entry, _ in _children(content, tracks, budget):
        if entry.name in (_VOID, _CHECKSUM):
            continue
        require(entry.name == _TRACK, f"an element {entry.name:x}")
        number, track = _read_track(content, entry, budget)
        require(number not in film.tracks, "two tracks of one number")
        film.tracks[number] = track


def _read_track(content: Content, entry: Element, budget: Budget) -> tuple[int, _Track]:
    """Return a track with its number."""
    values = {_NUMBER: b"", _CODEC: b"", _FRAME_LENGTH: b"", _CONFIGURATION: b""}
    rates: list[float] = []
    for element, body in _children(content, entry, budget):
        require(element.name not in _TRACK_REFUSED and not values.get(element.name), f"an element {element.name:x}")
        if element.name == _CONFIGURATION:
            values[element.name] = _whole(content, element, _CONFIGURATION_MAX)
        elif element.name in values:
            values[element.name] = body
        elif element.name == _DELAY:
            require(_unsigned(body) / 1e9 <= _DELAY_SECONDS_MAX, "a track that begins much earlier than stated")
        elif element.name == _AUDIO:
            inside = _children(content, element, budget)
            rates += [_float(number) for child, number in inside if child.name == _SAMPLING_RATE]
    codec, configuration = values[_CODEC].rstrip(b"\0"), values[_CONFIGURATION]
    require(codec in (*_VIDEO, *_STREAMS, _OPUS, _AAC, _MP3) or codec.startswith(b"S_"), f"the codec {codec[:20]!r}")
    track = _Track(codec, _unsigned(values[_FRAME_LENGTH]), _VIDEO.get(codec))
    if codec in _STREAMS:
        track.stream = _STREAMS[codec](configuration)
        track.shown_in = track.stream.count
    if codec == _AAC:
        aac = read_configuration(configuration)
        track.aac = aac._replace(rate=min([aac.rate, *rates]))
        require(track.aac.rate > 0, "a sampling rate of another form")
    return _unsigned(values[_NUMBER]), track


def _read_cluster(content: Content, cluster: Element, film: _Film, budget: Budget) -> int:
    """Read the blocks of a cluster, and return where it ends."""
    position, end = cluster.start, len(content) if cluster.end is None else cluster.end
    time: int | None = None
    while position < end:
        budget.spend()
        element = _element(content, position, end)
        if cluster.end is None and element.name in (_CLUSTER, _CUES, _TAGS):
            return position
        require(element.end is not None, "an element without a size")
        assert element.end is not None
        if element.name == _TIME:
            require(time is None, "a cluster with two times")
            time = _unsigned(bytes(content[element.start : min(element.end, element.start + 9)]))
        elif element.name in (_SIMPLE_BLOCK, _GROUP):
            require(time is not None, "a block before the time of its cluster")
            _read_block(content, element, time or 0, film, budget)
        else:
            require(element.name in _CLUSTER_IGNORED, f"an element {element.name:x}")
        position = element.end
    return end


def _read_block(content: Content, element: Element, time: int, film: _Film, budget: Budget) -> None:
    """Note when a block ends."""
    assert element.end is not None
    start, end, length = element.start, element.end, 0
    if element.name == _GROUP:
        inside = list(_children(content, element, budget))
        known = [child for child, _ in inside if child.name not in _GROUP_IGNORED]
        require(
            sorted(child.name for child in known) in ([_BLOCK], [_LENGTH, _BLOCK]), "a group of blocks of another form"
        )
        length = sum(_unsigned(body) for child, body in inside if child.name == _LENGTH)
        [(start, end)] = [(child.start, child.end or 0) for child in known if child.name == _BLOCK]
    number, start = _number(content, start, end)
    require(start + 3 <= end and number in film.tracks, "a block of no track")
    offset, flags = struct.unpack_from(">hB", content, start)
    require(not flags & _LACING, "several frames in a block")
    track = film.tracks[number]
    _note_audio(content, track, start + 3, end)
    if track.shown_in is not None:
        require(track.shown_in(bytes(content[start + 3 : end])) <= 1, "several pictures in a block")
        track.add_picture((time + offset) * film.scale / 1e9)
    film.end = max(film.end, time + offset + max(length, track.frame_length / film.scale))


def _note_audio(content: Content, track: _Track, start: int, end: int) -> None:
    """Note how long a block of audio plays, or where it is. Each must be one packet or one frame."""
    if track.codec == _OPUS and start < end:
        track.decoded += opus_seconds(bytes(content[start : min(start + 2, end)]))
    elif track.codec == _AAC:
        require(start < end, "a frame that is cut off")
        track.positions.append(start)
        track.sizes.append(end - start)
    elif track.codec == _MP3:
        frame = frame_at(content, start)
        require(frame is not None and frame.size == end - start, "several frames in a block")
        assert frame is not None
        track.decoded += frame.seconds


def _children(content: Content, parent: Element, budget: Budget) -> Iterator[tuple[Element, bytes]]:
    """Yield the elements of an element, which they fill exactly, with the first bytes of each."""
    position, end = parent.start, parent.end
    assert end is not None
    while position < end:
        budget.spend()
        element = _element(content, position, end)
        require(element.end is not None, "an element without a size")
        assert element.end is not None
        yield element, bytes(content[element.start : min(element.end, element.start + 32)])
        position = element.end


def _whole(content: Content, element: Element, bytes_max: int) -> bytes:
    assert element.end is not None
    require(element.end - element.start <= bytes_max, f"an element {element.name:x} that is too long")
    return bytes(content[element.start : element.end])


def _element(content: Content, position: int, end: int) -> Element:
    name, start = _number(content, position, end, keep_marker=True)
    require(start - position <= 4, "a name of another form")  # noqa: PLR2004
    size, start = _number(content, start, end)
    if size < 0:
        return Element(name, start, None)
    require(size <= end - start, "an element that does not end where it should")
    return Element(name, start, start + size)


def _number(content: Content, position: int, end: int, *, keep_marker: bool = False) -> tuple[int, int]:
    """Read a variable-length integer; return it with the position after it. -1 means an unknown size."""
    require(position < end, "a number that is cut off")
    count = 9 - content[position].bit_length()
    require(count <= _NUMBER_BYTES_MAX and position + count <= end, "a number that is cut off")
    value = int.from_bytes(content[position : position + count])
    if keep_marker:
        return value, position + count
    value &= (1 << 7 * count) - 1
    return -1 if value == (1 << 7 * count) - 1 else value, position + count


def _unsigned(body: bytes) -> int:
    require(len(body) <= _NUMBER_BYTES_MAX, "a number that is too long")
    return int.from_bytes(body)


def _float(body: bytes) -> float:
    require(len(body) in (4, 8), "a number of another form")
    number: float = struct.unpack(">f" if len(body) == 4 else ">d", body)[0]  # noqa: PLR2004
    return number
