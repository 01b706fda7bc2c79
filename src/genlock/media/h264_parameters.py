"""Read the parameters of a stream of H.264: how long a picture is shown, and which pictures are fields."""

from typing import NamedTuple

from genlock.media.bit_reader import BitReader
from genlock.media.budget import require

#: the header of a slice is longer, but its beginning tells the field
SLICE_HEADER_BYTES = 24
#: profiles whose parameters state the colour format
_HIGH_PROFILES = (44, 83, 86, 100, 110, 118, 122, 128, 134, 135, 138, 139, 244)
_FULL_COLOUR = 3
_ORDER_BY_NUMBER, _ORDER_BY_CYCLE, _CYCLE_MAX = 0, 1, 255
_FRAME_NUMBER_BITS_MAX = 16
_REFERENCE_BITS = 0x60


class Parameters(NamedTuple):
    frame_number_bits: int
    #: whether a picture may consist of two fields with slices of their own
    has_fields: bool
    #: how long a picture is shown; 0.0 if it is not stated
    picture_seconds: float


class Field(NamedTuple):
    frame_number: int
    is_bottom: bool
    is_reference: bool


def read_field(slice_: bytes, frame_number_bits: int) -> Field | None:
    """Return which field a slice belongs to; None if it belongs to a whole picture."""
    bits = BitReader(slice_[1:SLICE_HEADER_BYTES])
    bits.skip_numbers(3)  # its first macroblock, its type, and the number of its parameters
    frame_number = bits.take(frame_number_bits)
    if not bits.take(1):
        return None
    return Field(frame_number, bool(bits.take(1)), bool(slice_[0] & _REFERENCE_BITS))


def read_parameters(unit: bytes) -> Parameters:
    """Read a sequence parameter set. Raises NotMeasured if it is not understood."""
    bits = BitReader(unit[1:])
    profile = bits.take(8)
    bits.take(16)
    bits.skip_numbers(1)
    if profile in _HIGH_PROFILES:
        _skip_colours(bits)
    frame_number_bits = bits.number() + 4
    require(frame_number_bits <= _FRAME_NUMBER_BITS_MAX, "parameters of another form")
    _skip_order(bits)
    bits.skip_numbers(1)
    bits.take(1)
    bits.skip_numbers(2)
    has_fields = not bits.take(1)
    bits.take(2 if has_fields else 1)
    if bits.take(1):  # the edges are cut off
        bits.skip_numbers(4)
    seconds = 0.0
    if bits.take(1):
        bits.skip_appearance()
        seconds = 2 * bits.tick_seconds()  # a tick is the duration of a field
    return Parameters(frame_number_bits, has_fields, seconds)


def _skip_colours(bits: BitReader) -> None:
    colours = bits.number()
    if colours == _FULL_COLOUR:
        require(not bits.take(1), "colours in pictures of their own")
    bits.skip_numbers(2)
    bits.take(1)
    if bits.take(1):
        for number in range(12 if colours == _FULL_COLOUR else 8):
            if bits.take(1):
                _skip_scaling_list(bits, 16 if number < 6 else 64)  # noqa: PLR2004 - the first six are small


def _skip_scaling_list(bits: BitReader, size: int) -> None:
    last = 8
    for _ in range(size):
        last = (last + bits.signed()) % 256
        if not last:
            return


def _skip_order(bits: BitReader) -> None:
    """Skip how the order of pictures is coded."""
    kind = bits.number()
    if kind == _ORDER_BY_NUMBER:
        bits.skip_numbers(1)
    elif kind == _ORDER_BY_CYCLE:
        bits.take(1)
        bits.skip_numbers(2)
        count = bits.number()
        require(count <= _CYCLE_MAX, "parameters of another form")
        bits.skip_numbers(count)
