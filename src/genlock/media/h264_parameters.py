"""Read the parameters of a stream of H.264: how long a picture is shown, and which pictures are fields."""

from typing import NamedTuple

from genlock.media.bit_reader import BitReader
from genlock.media.budget import require

#: the header of a slice is longer, but its beginning tells the picture
SLICE_HEADER_BYTES = 32
#: the type of a slice of a key picture
KEY_SLICE = 5
#: profiles whose parameters state the colour format
_HIGH_PROFILES = (44, 83, 86, 100, 110, 118, 122, 128, 134, 135, 138, 139, 244)
_FULL_COLOUR = 3
_ORDER_BY_NUMBER, _ORDER_BY_CYCLE, _CYCLE_MAX = 0, 1, 255
_NUMBER_BITS_MAX = 16
_REFERENCE_BITS = 0x60


class Parameters(NamedTuple):
    frame_number_bits: int
    #: how many bits a slice has for the order of its picture; 0 if the order is coded in another way
    order_bits: int
    #: whether a picture may consist of two fields with slices of their own
    has_fields: bool
    #: how long a picture is shown; 0.0 if it is not stated
    picture_seconds: float


class Slice(NamedTuple):
    """What slices of the same picture, or of the same field, have in common: another value begins another picture."""

    parameters: int
    is_reference: bool
    frame_number: int
    #: None if the picture has no fields
    is_bottom: bool | None
    #: of key pictures
    key_number: int
    order: int


def read_slice(slice_: bytes, form: Parameters) -> Slice:
    """Read the beginning of a slice. Raises NotMeasured if it is cut off."""
    bits = BitReader(slice_[1:SLICE_HEADER_BYTES])
    bits.skip_numbers(2)  # its first macroblock and its type
    parameters = bits.number()
    frame_number = bits.take(form.frame_number_bits)
    is_bottom = bool(bits.take(1)) if form.has_fields and bits.take(1) else None
    key_number = bits.number() if slice_[0] & 31 == KEY_SLICE else 0
    order = bits.take(form.order_bits)
    return Slice(parameters, bool(slice_[0] & _REFERENCE_BITS), frame_number, is_bottom, key_number, order)


def read_parameters(unit: bytes) -> Parameters:
    """Read a sequence parameter set. Raises NotMeasured if it is not understood."""
    bits = BitReader(unit[1:])
    profile = bits.take(8)
    bits.take(16)
    bits.skip_numbers(1)
    if profile in _HIGH_PROFILES:
        _skip_colours(bits)
    frame_number_bits = bits.number() + 4
    order_bits = _order_bits(bits)
    require(max(frame_number_bits, order_bits) <= _NUMBER_BITS_MAX, "parameters of another form")
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
    return Parameters(frame_number_bits, order_bits, has_fields, seconds)


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


def _order_bits(bits: BitReader) -> int:
    """Skip how the order of pictures is coded, and return how many bits each slice has for it."""
    kind = bits.number()
    if kind == _ORDER_BY_NUMBER:
        return bits.number() + 4
    if kind == _ORDER_BY_CYCLE:
        bits.take(1)
        bits.skip_numbers(2)
        count = bits.number()
        require(count <= _CYCLE_MAX, "parameters of another form")
        bits.skip_numbers(count)
    return 0
