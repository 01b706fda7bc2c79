"""Check that each sample of a video track is one picture, as the times of samples suppose."""

from collections.abc import Callable, Mapping

from genlock.media.budget import Budget, require
from genlock.media.mapped_file import Content
from genlock.media.mp4 import Box, boxes
from genlock.media.mp4_samples import Samples, sample_descriptions
from genlock.media.nal_pictures import H264Stream, HevcStream
from genlock.media.shown_pictures import shown_in_av1, shown_in_jpeg, shown_in_vp9

_SHOWN: dict[bytes, Callable[[bytes], int]] = {
    b"vp09": shown_in_vp9,
    b"av01": shown_in_av1,
    b"jpeg": shown_in_jpeg,
}
#: the box with the configuration of the decoder, and what reads it
_STREAMS: dict[bytes, tuple[bytes, type[H264Stream | HevcStream]]] = {
    b"avc1": (b"avcC", H264Stream),
    b"avc3": (b"avcC", H264Stream),
    b"hvc1": (b"hvcC", HevcStream),
    b"hev1": (b"hvcC", HevcStream),
}
#: the size of a description before its boxes, and the most that a configuration has
_DESCRIPTION, _CONFIGURATION_MAX = 78, 65_536
#: boxes about colours, sizes, bit rates, interlacing and further layers; another one could hide a configuration
_BOXES = (
    b"colr", b"pasp", b"btrt", b"fiel", b"clap", b"gama", b"chrm", b"mdcv", b"clli", b"cclv", b"amve", b"SmDm", b"CoLL",
    b"dvcC", b"dvvC", b"dvwC", b"hvcE", b"lhvC", b"vexu", b"hfov", b"st3d", b"sv3d", b"ccst", b"m4ds", b"uuid", b"free",
)  # fmt: skip
#: QuickTime ends the boxes with a size of zero
_END = bytes(4)


def check_pictures(content: Content, tables: Mapping[bytes, Box], samples: Samples, budget: Budget) -> float:
    """Check that each sample of a video track shows one picture at most. Raises NotMeasured.

    Return how long a picture is shown as the stream itself states; 0.0 if it does not.
    """
    descriptions = list(sample_descriptions(content, tables[b"stsd"], budget))
    require(len({bytes(content[entry.start - 4 : entry.end]) for entry in descriptions}) == 1, "several descriptions")
    [name] = {entry.name for entry in descriptions}
    if name not in _STREAMS:
        if name in _SHOWN:
            _check_samples(content, samples, _SHOWN[name], budget)
        return 0.0
    box_name, make_stream = _STREAMS[name]
    stream = make_stream(_configuration(content, descriptions[0], box_name, budget))
    _check_samples(content, samples, stream.count, budget)
    return stream.picture_seconds


def _check_samples(content: Content, samples: Samples, shown_in: Callable[[bytes], int], budget: Budget) -> None:
    budget.spend(samples.count)
    sizes = samples.sizes()
    require(sum(sizes) <= len(content), "samples that overlap")
    for position, size in zip(samples.positions(budget), sizes, strict=True):
        require(shown_in(bytes(content[position : position + size])) <= 1, "several pictures in a sample")


def _configuration(content: Content, entry: Box, name: bytes, budget: Budget) -> bytes:
    """Return the content of the only box of this name in a description."""
    found = []
    for box in boxes(content, entry.start + _DESCRIPTION, entry.end, budget):
        require(box.name in (name, *_BOXES), "a description with other boxes")
        found.append(box)
        if content[box.end : entry.end] == _END:
            break
    configurations = [box for box in found if box.name == name]
    require(len(configurations) == 1, "no configuration, or two")
    [box] = configurations
    require(box.end - box.start <= _CONFIGURATION_MAX, "a configuration of another form")
    return bytes(content[box.start : box.end])
