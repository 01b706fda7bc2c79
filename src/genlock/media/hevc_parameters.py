"""Read from the parameters of a stream of HEVC how long a picture is shown."""

from genlock.media.bit_reader import BitReader
from genlock.media.budget import require

_VIDEO_PARAMETERS, _SEQUENCE_PARAMETERS = 32, 33
_FULL_COLOUR = 3
_LAYER_SETS_MAX, _REFERENCE_SETS_MAX, _REFERENCES_MAX = 1024, 64, 32
#: decoders that find fewer bits after the flag of the times read them in another form
_TIMES_BITS_MIN = 66


def picture_seconds(unit: bytes) -> float:
    """Return how long a picture is shown by a unit of parameters; 0.0 if it is not stated. Raises NotMeasured."""
    kind = unit[0] >> 1 & 63
    if kind == _VIDEO_PARAMETERS:
        return _video_parameters(BitReader(unit[2:]))
    if kind == _SEQUENCE_PARAMETERS:
        return _sequence_parameters(BitReader(unit[2:]))
    return 0.0


def _video_parameters(bits: BitReader) -> float:
    bits.take(12)
    layers = bits.take(3) + 1
    bits.take(17)
    _skip_profile(bits, layers)
    _skip_ordering(bits, layers)
    last_layer = bits.take(6)
    sets = bits.number()
    require(sets < _LAYER_SETS_MAX, "parameters of another form")
    bits.take(sets * (last_layer + 1))
    return bits.tick_seconds()


def _sequence_parameters(bits: BitReader) -> float:
    bits.take(4)
    layers = bits.take(3) + 1
    bits.take(1)
    _skip_profile(bits, layers)
    bits.skip_numbers(1)
    if bits.number() == _FULL_COLOUR:
        bits.take(1)
    bits.skip_numbers(2)
    if bits.take(1):  # the edges are cut off
        bits.skip_numbers(4)
    bits.skip_numbers(2)
    order_bits = bits.number() + 4
    _skip_ordering(bits, layers)
    bits.skip_numbers(6)
    if bits.take(1) and bits.take(1):
        _skip_scaling_lists(bits)
    bits.take(2)
    if bits.take(1):  # samples without compression
        bits.take(8)
        bits.skip_numbers(2)
        bits.take(1)
    _skip_references(bits, order_bits)
    bits.take(2)
    return _appearance(bits) if bits.take(1) else 0.0


def _appearance(bits: BitReader) -> float:
    bits.skip_appearance()
    bits.take(3)
    require(not bits.take(1), "a part of the picture to be shown")  # decoders disagree about its form
    if bits.left > _TIMES_BITS_MIN:
        return bits.tick_seconds()
    require(not bits.take(1), "times of another form")
    return 0.0


def _skip_profile(bits: BitReader, layers: int) -> None:
    bits.take(96)
    present = [(bits.take(1), bits.take(1)) for _ in range(layers - 1)]
    if present:
        bits.take(2 * (8 - len(present)))
    for has_profile, has_level in present:
        bits.take(88 * has_profile + 8 * has_level)


def _skip_ordering(bits: BitReader, layers: int) -> None:
    bits.skip_numbers(3 * (layers if bits.take(1) else 1))


def _skip_scaling_lists(bits: BitReader) -> None:
    for size in range(4):
        for _ in range(2 if size == 3 else 6):  # noqa: PLR2004 - the largest exist for two of six
            if not bits.take(1):
                bits.skip_numbers(1)
                continue
            bits.skip_numbers((1 if size > 1 else 0) + min(64, 16 << 2 * size))


def _skip_references(bits: BitReader, order_bits: int) -> None:
    """Skip which pictures others may refer to."""
    count = bits.number()
    require(count <= _REFERENCE_SETS_MAX, "parameters of another form")
    previous = 0
    for number in range(count):
        previous = _skip_reference_set(bits, previous, has_prediction=number > 0)
    if bits.take(1):
        count = bits.number()
        require(count <= _REFERENCES_MAX and order_bits <= 16, "parameters of another form")  # noqa: PLR2004
        bits.take(count * (order_bits + 1))


def _skip_reference_set(bits: BitReader, previous: int, *, has_prediction: bool) -> int:
    """Skip a set, and return how many pictures it has."""
    if has_prediction and bits.take(1):
        bits.take(1)
        bits.skip_numbers(1)
        # an entry that is not used may still be kept, which takes another bit
        return sum(bits.take(1) or bits.take(1) for _ in range(previous + 1))
    count = bits.number() + bits.number()
    require(count <= _REFERENCES_MAX, "parameters of another form")
    for _ in range(count):
        bits.skip_numbers(1)
        bits.take(1)
    return count
