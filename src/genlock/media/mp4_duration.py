"""Measure how long an MPEG-4 file plays (.mp4, .mov, .m4a).

Players disagree about what they do not expect: some read an index wherever they find one, some follow edit lists, some
count samples. So a file is measured only if all of its structure is known here, and the longest reading counts.
"""

import re
import struct
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from genlock.media.budget import Budget, NotMeasured, require
from genlock.media.mapped_file import Content
from genlock.media.mp4 import MEDIA_HEADER, MOVIE_HEADER, TRACK_HEADER, Box, boxes, header_times, version_of
from genlock.media.mp4_audio import audio_seconds
from genlock.media.mp4_fragments import Fragments, TrackFragment, read_number
from genlock.media.mp4_samples import Samples, Span, presented, sample_descriptions, with_fragments
from genlock.media.mp4_video import check_pictures
from genlock.media.shown_pictures import PICTURES_PER_SECOND_MAX, check_stated

Tree = dict[bytes, list[Box]]

#: how often a box may occur: at least, at most
_ONE, _MAYBE, _SOME, _ANY, _MANY = (1, 1), (0, 1), (1, 1000), (0, 1000), (0, 10_000)
_IGNORED = dict.fromkeys((b"free", b"skip", b"uuid", b"udta", b"meta"), _ANY)
_MEDIA_HEADERS = dict.fromkeys((b"vmhd", b"smhd", b"hmhd", b"nmhd", b"sthd", b"gmhd"), _MAYBE)
_CHILDREN: Final = {
    b"file": {
        b"ftyp": _ONE, b"moov": _ONE, b"mfra": _MAYBE, **dict.fromkeys((b"free", b"skip", b"wide", b"uuid"), _ANY),
        **dict.fromkeys((b"mdat", b"moof", b"sidx", b"styp", b"prft"), _MANY),
    },
    b"moov": {b"mvhd": _ONE, b"trak": _SOME, b"iods": _MAYBE, b"mvex": _MAYBE, **_IGNORED},
    b"mvex": {b"mehd": _MAYBE, b"trex": _SOME},
    b"moof": {b"mfhd": _ONE, b"traf": _SOME, b"uuid": _ANY, b"free": _ANY},
    b"traf": {
        b"tfhd": _ONE, b"tfdt": _MAYBE, b"trun": _ANY,
        **dict.fromkeys((b"sdtp", b"sgpd", b"sbgp", b"subs", b"uuid", b"free"), _ANY),
    },
    b"mfra": {b"tfra": _ANY, b"mfro": _MAYBE},
    b"trak": {
        b"tkhd": _ONE, b"mdia": _ONE, b"edts": _MAYBE, b"tref": _MAYBE, b"tapt": _MAYBE, b"load": _MAYBE, **_IGNORED,
    },
    b"edts": {b"elst": _ONE},
    b"mdia": {b"mdhd": _ONE, b"hdlr": _ONE, b"minf": _ONE, b"elng": _MAYBE, b"free": _ANY},
    b"minf": {b"stbl": _ONE, b"dinf": _MAYBE, b"hdlr": _MAYBE, **_MEDIA_HEADERS},
    b"stbl": {
        b"stsd": _ONE, b"stts": _ONE, b"stsc": _ONE, b"stsz": _ONE, b"stco": _MAYBE, b"co64": _MAYBE, b"ctts": _MAYBE,
        **dict.fromkeys((b"cslg", b"stss", b"stps", b"sdtp", b"sgpd", b"sbgp", b"subs", b"padb", b"free"), _ANY),
    },
}  # fmt: skip
_FIRST = {b"file": b"ftyp", b"moov": b"mvhd"}
#: names that make a player read a length; each one outside the media data must be a box in its place
_MEANINGFUL = (
    b"moov", b"mvhd", b"trak", b"tkhd", b"edts", b"elst", b"mdia", b"mdhd", b"stbl", b"stsd", b"stts", b"stsc", b"stsz",
    b"ctts", b"stco", b"co64", b"cmov", b"cmvd", b"foov", b"hoov", b"moof", b"mvex", b"mehd", b"sidx", b"mfra", b"rmra",
    b"traf", b"tfhd", b"tfdt", b"trun", b"trex", b"tfra",
)  # fmt: skip
#: Names that make some player take other audio or video out of the samples, or at another rate: the configuration of a
#: codec, tables that are not read here, a type of audio. Each description of a codec may have one of them.
_CONFIGURATIONS = (
    b"esds", b"avcC", b"hvcC", b"vvcC", b"evcC", b"lvcC", b"av1C", b"apvC", b"vpcC", b"dvc1", b"dOps", b"dfLa", b"dac3",
    b"dec3", b"ddts", b"dmlp", b"pcmC", b"iacb", b"glbl", b"wfex", b"strf", b"srat", b"stz2", b"jp2h", b"frma", b"senc",
    b"tenc", b"m1a ",
)  # fmt: skip
_CONFIGURATION = re.compile(b"|".join(_CONFIGURATIONS))
_FORMAT = b"frma"
_BRANDS = re.compile(rb"isom|iso[2-9]|mp4[12]|avc1|M4[ABV] |qt  |3g[p2].|MSNV|f4v |XAVC|mmp4")
#: a movie that says this is read as an MPEG program stream instead
_PROGRAM_STREAM = b"mhlrMPEG"
_HANDLERS = (b"vide", b"soun", b"text", b"sbtl", b"subt", b"clcp", b"tmcd", b"meta", b"hint")
#: each sample of these is one picture, as far as `check_pictures` does not find several
_VIDEO_CODECS = (
    b"avc1", b"avc3", b"hvc1", b"hev1", b"av01", b"vp08", b"vp09", b"jpeg",
    b"apch", b"apcn", b"apcs", b"apco", b"ap4h", b"ap4x",
)  # fmt: skip
_CODECS = {b"vide": _VIDEO_CODECS, b"soun": (b"mp4a", b"Opus")}
#: captions, time codes, positions and the like; players would play audio or video in a track of any type
_OTHER_CODECS = (
    b"text", b"tx3g", b"wvtt", b"stpp", b"sbtt", b"c608", b"c708", b"tmcd", b"mebx", b"mett", b"metx", b"urim", b"rtp ",
    b"gpmd", b"camm", b"fdsc",
)  # fmt: skip
_NORMAL_SPEED = 0x10000
#: a start that is later counts as part of the film: the delay of reordered frames is shorter
START_SECONDS_MAX = 1.0
#: the mean duration of the pictures of a film that is not as usual
SLOW_SECONDS_MIN = 0.1


class Movie(NamedTuple):
    scale: int
    seconds: float


class Length(NamedTuple):
    """How long a track plays."""

    seconds: float
    #: of audio and video: the seconds that the edit list skips, and when the first fragment begins
    skipped: float | None = None
    begin: float | None = None


def read_duration(content: Content, budget: Budget) -> float:
    """Return the longest duration in seconds that any reading of the file gives. Raises NotMeasured and TooComplex."""
    found: Counter[bytes] = Counter()
    top = _children(content, Box(b"file", 0, len(content)), budget, found)
    require(_BRANDS.fullmatch(content[8:12]), "a brand that is not known")
    index = _children(content, top[b"moov"][0], budget, found)
    movie = _movie(content, index)
    fragments = _fragments(content, top, index, budget, found)
    tracks = [_children(content, track, budget, found) for track in index[b"trak"]]
    lengths = [_track(content, track, movie, fragments, budget, found) for track in tracks]
    _nothing_hidden(content, top.get(b"mdat", []), found)
    indexes = fragments.check_indexes(content, top.get(b"sidx", ()), budget)
    longest = max(movie.seconds, fragments.stated / movie.scale, indexes, *(length.seconds for length in lengths))
    return longest + _apart([length.skipped for length in lengths]) + _apart([length.begin for length in lengths])


def _apart(begins: Sequence[float | None]) -> float:
    """Return how much earlier than the last track the first one begins: some players show what it has before."""
    known = [begin for begin in begins if begin is not None]
    apart = max(known, default=0.0) - min(known, default=0.0)
    return apart if apart > START_SECONDS_MAX else 0.0


def _fragments(content: Content, top: Tree, index: Tree, budget: Budget, box_counts: Counter[bytes]) -> Fragments:
    """Return what the file has in fragments."""
    fragments = Fragments(
        known={box.start - 8 for name in (b"moof", b"styp", b"sidx", b"prft") for box in top.get(name, ())}
    )
    for extension in index.get(b"mvex", ()):
        inside = _children(content, extension, budget, box_counts)
        for header in inside.get(b"mehd", ()):
            fragments.stated = read_number(content, header)
        for box in inside[b"trex"]:
            fragments.add_defaults(content, box)
    for fragment in top.get(b"moof", ()):
        require(fragment.start > index[b"mvhd"][0].start, "a fragment before the index")
        for place, part in enumerate(_children(content, fragment, budget, box_counts)[b"traf"]):
            inside = _children(content, part, budget, box_counts)
            time = inside.get(b"tfdt", [None])[0]
            fragments.add(
                content, TrackFragment(fragment, place == 0, inside[b"tfhd"][0], time, inside.get(b"trun", []))
            )
    for footer in top.get(b"mfra", ()):
        fragments.random_access += _children(content, footer, budget, box_counts).get(b"tfra", [])
    return fragments


def _children(content: Content, parent: Box, budget: Budget, box_counts: Counter[bytes]) -> Tree:
    """Return the boxes in a box by name. Each must be known at this place, and occur as often as it may."""
    tree: Tree = {}
    allowed = _CHILDREN[parent.name]
    for box in boxes(content, parent.start, parent.end, budget):
        require(box.name in allowed, f"{box.name!r} in {parent.name!r}")
        require(tree or box.name == _FIRST.get(parent.name, box.name), "a header that is not the first box")
        tree.setdefault(box.name, []).append(box)
        box_counts[box.name] += 1
    for name, (least, most) in allowed.items():
        require(least <= len(tree.get(name, ())) <= most, f"{len(tree.get(name, ()))} of {name!r} in {parent.name!r}")
    return tree


def _nothing_hidden(content: Content, media: list[Box], box_counts: Counter[bytes]) -> None:
    """Check that no box that players would read is inside another one, whatever its name or nesting."""
    require(content.find(_PROGRAM_STREAM) < 0, "a program stream inside")
    for name in _MEANINGFUL + _CONFIGURATIONS:
        occurrences = sum(_count(content, name, start, end) for start, end in _outside(media, len(content)))
        require(occurrences == box_counts[name], f"{name!r} in a place where it is not read here")


def _configurations(content: Content, description: Box) -> Counter[bytes]:
    """Count the configurations of a codec in its description: one at most, and one that names its format."""
    found = Counter(_CONFIGURATION.findall(content[description.start : description.end]))
    require(found.total() - min(found[_FORMAT], 1) <= 1, "several configurations of a codec")
    return found


def _outside(media: list[Box], size: int) -> Iterator[tuple[int, int]]:
    """Yield the ranges of a file that are not media data."""
    start = 0
    for box in media:
        yield start, box.start
        start = box.end
    yield start, size


def _count(content: Content, name: bytes, start: int, end: int) -> int:
    count = 0
    while (start := content.find(name, start, end)) >= 0:
        count, start = count + 1, start + 4
        if count > _ANY[1] * 2:
            raise NotMeasured("too many boxes of a kind")
    return count


def _movie(content: Content, index: Tree) -> Movie:
    header = index[b"mvhd"][0]
    scale, length = header_times(content, header, MOVIE_HEADER)
    [speed] = struct.unpack_from(">I", content, header.start + (32 if content[header.start] else 20))
    require(speed == _NORMAL_SPEED, "a movie at another speed")
    return Movie(scale, length / scale)


class Edits(NamedTuple):
    #: the seconds before the track begins
    delay: float
    #: the seconds of all edits together
    whole: float
    #: where the first sample that is shown lies, in units of the track's time scale
    first: int


def _track(
    content: Content, track: Tree, movie: Movie, fragments: Fragments, budget: Budget, box_counts: Counter[bytes]
) -> Length:
    """Return the longest duration that headers, edits, the times of samples and decoded samples give."""
    media = _children(content, track[b"mdia"][0], budget, box_counts)
    info = _children(content, media[b"minf"][0], budget, box_counts)
    tables = _children(content, info[b"stbl"][0], budget, box_counts)
    scale, length = header_times(content, media[b"mdhd"][0], MEDIA_HEADER)
    kind = _handler(content, media[b"hdlr"][0])
    first_tables = {name: boxes_[0] for name, boxes_ in tables.items()}
    for description in sample_descriptions(content, first_tables[b"stsd"], budget):
        require(description.name in _CODECS.get(kind, _OTHER_CODECS), f"{kind!r} as {description.name!r}")
        if kind in _CODECS:
            box_counts += _configurations(content, description)
    header = track[b"tkhd"][0]
    span = presented(content, first_tables, budget)
    more = fragments.read_samples(content, _track_number(content, header), span.end, scale, budget)
    samples = Samples(content, first_tables, span.samples, more)
    span = with_fragments(span, more)
    if kind == b"vide":
        require(span.end > 0, "pictures without times")
        stated = check_pictures(content, first_tables, samples, budget)
        check_stated(stated, samples.count, span.end / scale)
    edits = _edits(content, track, movie, budget, box_counts)
    require(edits.first <= span.end or not samples.count, "an edit list that skips more than there is")
    # Reordered frames begin late, and the edit list takes that back. A later start counts as part of the film, and so
    # does a start before zero.
    start = min(span.start, edits.first)
    start = start if start <= START_SECONDS_MAX * scale else 0
    seconds = max(
        _track_header(content, header) / movie.scale,
        length / scale,
        edits.whole,
        edits.delay + (span.end - start) / scale,
        audio_seconds(content, first_tables, samples, budget) if kind == b"soun" else 0.0,
        _pictures_seconds(span, scale) if kind == b"vide" else 0.0,
    )
    if kind not in _CODECS:
        return Length(seconds)
    return Length(seconds, max(0, edits.first - span.start) / scale, more.begin / scale)


def _pictures_seconds(span: Span, scale: int) -> float:
    """Return how long the pictures of a film are shown at least.

    Programs that round times show each for a while, and some show the last one of a slow film for as long as others.
    """
    shortest = span.samples / PICTURES_PER_SECOND_MAX
    before_last = (span.end - span.start - span.last) / scale
    mean = before_last / max(1, span.samples - 1)
    return max(shortest, before_last + mean) if mean > SLOW_SECONDS_MIN else shortest


def _handler(content: Content, box: Box) -> bytes:
    """Return which type of media a track holds."""
    kind = bytes(content[box.start + 8 : min(box.start + 12, box.end)])
    require(kind in _HANDLERS, f"a track of {kind!r}")
    return kind


def _track_header(content: Content, header: Box) -> int:
    form, offset = (">Q", 28) if version_of(content, header, TRACK_HEADER) else (">I", 20)
    length: int = struct.unpack_from(form, content, header.start + offset)[0]
    return length


def _track_number(content: Content, header: Box) -> int:
    version = version_of(content, header, TRACK_HEADER)
    number: int = struct.unpack_from(">I", content, header.start + (20 if version else 12))[0]
    return number


def _edits(content: Content, track: Tree, movie: Movie, budget: Budget, box_counts: Counter[bytes]) -> Edits:
    if b"edts" not in track:
        return Edits(0.0, 0.0, 0)
    box = _children(content, track[b"edts"][0], budget, box_counts)[b"elst"][0]
    delay = whole = 0
    first: int | None = None
    for length, position, speed in _edit_list(content, box, budget):
        require(speed == _NORMAL_SPEED, "an edit at another speed")
        whole += length
        if position == -1:
            delay += length
        else:
            # Of several, each shows one picture at least, and a copy of the stream begins each at a key frame.
            require(first is None, "several edits")
            first = position
    return Edits(delay / movie.scale, whole / movie.scale, first or 0)


def _edit_list(content: Content, box: Box, budget: Budget) -> Iterable[tuple[int, ...]]:
    require(box.end - box.start >= 8, "an edit list without its length")  # noqa: PLR2004
    version, count = struct.unpack_from(">B3xI", content, box.start)
    require(version < 2, "an edit list of another version")  # noqa: PLR2004
    form = ">QqI" if version else ">IiI"
    require(box.end - box.start == 8 + count * struct.calcsize(form), "an edit list of another length")
    budget.spend(count)
    return struct.iter_unpack(form, content[box.start + 8 : box.end])
