"""Count the pictures in a sample of H.264 or HEVC, which consists of units (NAL units) with their lengths.

A decoder of MP4 shows one picture of each sample. But a program that first copies the stream to another container, such
as the segments of HLS, finds where pictures begin by itself, and shows each one for as long as the stream states.
"""

from collections.abc import Iterator

from genlock.media import hevc_parameters
from genlock.media.budget import require
from genlock.media.h264_parameters import KEY_SLICE, SLICE_HEADER_BYTES, Parameters, Slice, read_parameters, read_slice

#: the bytes between units where these have no lengths; some decoders also search for them inside a unit
_START_CODE = b"\0\0\1"
_LENGTH, _CONFIGURATION_LENGTH = 4, 2
#: In one sample, and in all of a file: half an hour with eight slices in each picture has fewer. All samples are read,
#: because one of them could hold a film.
_UNITS_MAX, _ALL_UNITS_MAX = 1000, 500_000
#: longer parameters, or more different ones, are not what encoders write
_PARAMETER_BYTES_MAX, _PARAMETERS_MAX = 1024, 32
#: of H.264: slices, parameters, other units before the first slice of a picture, and those anywhere
_SLICE, _SLICES, _SEQUENCE_PARAMETERS = 1, (1, KEY_SLICE), 7
_BEFORE_PICTURE, _ANYWHERE = (6, 7, 8, 9, 10, 11, 15), (12, 14, 20)
#: of HEVC: slices have lower types
_HEVC_SLICES_END, _HEVC_PARAMETERS = 32, (32, 33)
_HEVC_BEFORE_PICTURE = frozenset((*range(32, 38), 39, *range(41, 45), *range(48, 56)))


class NalStream:
    """Reads the configuration and the samples of a stream."""

    #: where the configuration states the size of lengths
    _length_at: int

    def __init__(self, configuration: bytes) -> None:
        """Raises NotMeasured if the configuration is not understood."""
        #: the longest duration of a picture that the stream states; 0.0 if it states none
        self.picture_seconds = 0.0
        self._units_left = _ALL_UNITS_MAX
        self._parameters: set[bytes] = set()
        require(len(configuration) > self._length_at + 1, "a configuration that is cut off")
        require(configuration[0] == 1, "a configuration of another form")
        require(configuration[self._length_at] & 3 == _LENGTH - 1, "lengths of another form")

    def _read_parameters(self, unit: bytes) -> None:
        """Read a unit if it has parameters."""
        raise NotImplementedError

    def _read_list(self, configuration: bytes, position: int, count: int) -> int:
        """Read units of parameters in the configuration, and return where they end."""
        for start, end in self._split(configuration, position, _CONFIGURATION_LENGTH, count):
            self._read_parameters(configuration[start:end])
            position = end
        return position

    def _split(self, sample: bytes, position: int, length: int, count: int | None = None) -> Iterator[tuple[int, int]]:
        """Yield where units begin and end: a number of them, or as many as fill the sample."""
        size = len(sample)
        for _ in range(min(_UNITS_MAX, self._units_left) if count is None else count):
            if count is None and position >= size:
                return
            self._units_left -= 1
            start = position + length
            position = start + int.from_bytes(sample[position:start])
            require(start < position <= size, "a unit that does not end where it should")
            require(sample.find(_START_CODE, start, position) < 0, "a unit inside another")
            yield start, position
        require(count is not None or position >= size, "too many units")

    def _is_new(self, parameters: bytes) -> bool:
        """Whether parameters were not read before. Raises NotMeasured if they are too many."""
        if parameters in self._parameters:
            return False
        require(len(parameters) <= _PARAMETER_BYTES_MAX, "parameters that are too long")
        require(len(self._parameters) < _PARAMETERS_MAX, "too many parameters")
        self._parameters.add(parameters)
        return True


class H264Stream(NalStream):
    _length_at = 4

    def __init__(self, configuration: bytes) -> None:
        super().__init__(configuration)
        self._forms: set[Parameters] = set()
        position = 5
        for mask in (31, 255):  # parameters of sequences, then those of pictures
            require(position < len(configuration), "a configuration that is cut off")
            count = configuration[position] & mask
            position = self._read_list(configuration, position + 1, count)

    def count(self, sample: bytes) -> int:
        """Return how many pictures a sample has. Two fields of one picture count as one."""
        pictures: list[bytes] = []
        common: Slice | None = None
        kind_before = last = 0
        for start, end in self._split(sample, 0, _LENGTH):
            kind = sample[start] & 31
            if kind in _SLICES:
                first = _first_macroblock(sample, start, end)
                head = sample[start : min(end, start + SLICE_HEADER_BYTES)]
                is_new = kind != kind_before or first <= last
                if not is_new:
                    common = common or self._read_slice(pictures[-1])
                    is_new = common is None or self._read_slice(head) != common
                if is_new:
                    pictures.append(head)
                    common = None
                kind_before, last = kind, first
            elif kind in _BEFORE_PICTURE:
                kind_before = 0
                self._read_parameters(sample[start:end])
            else:
                require(kind in _ANYWHERE, "a unit that is not known")
        return 1 if len(pictures) == 2 and self._is_pair(*pictures) else len(pictures)  # noqa: PLR2004

    def _read_parameters(self, unit: bytes) -> None:
        if unit[0] & 31 == _SEQUENCE_PARAMETERS and self._is_new(unit):
            form = read_parameters(unit)
            self.picture_seconds = max(self.picture_seconds, form.picture_seconds)
            self._forms.add(form._replace(picture_seconds=0.0))

    def _read_slice(self, head: bytes) -> Slice | None:
        """Read the beginning of a slice; return None if there are parameters of several forms, or none."""
        return read_slice(head, *self._forms) if len(self._forms) == 1 else None

    def _is_pair(self, first: bytes, second: bytes) -> bool:
        """Whether two pictures, given by the beginning of their first slices, are the fields of one."""
        one, other = self._read_slice(first), self._read_slice(second)
        if one is None or other is None or None in (one.is_bottom, other.is_bottom) or second[0] & 31 != _SLICE:
            return False
        is_same = one.frame_number == other.frame_number and one.is_reference == other.is_reference
        return is_same and one.is_bottom != other.is_bottom


def _first_macroblock(sample: bytes, start: int, end: int) -> int:
    """Return where in the picture a slice begins, from its first bits."""
    require(end - start > 1, "a slice that is cut off")
    if sample[start + 1] & 0x80:
        return 0
    word = int.from_bytes(sample[start + 1 : min(start + 9, end)].ljust(8, b"\0"))
    zeros = 64 - word.bit_length()
    require(zeros < 16, "a slice that begins far behind")  # noqa: PLR2004 - more zeros are written in another form
    return (word >> (63 - 2 * zeros)) - 1


class HevcStream(NalStream):
    _length_at = 21

    def __init__(self, configuration: bytes) -> None:
        super().__init__(configuration)
        position = 23
        for _ in range(configuration[22]):
            count = int.from_bytes(configuration[position + 1 : position + 3])
            position = self._read_list(configuration, position + 3, count)

    def count(self, sample: bytes) -> int:
        """Return how many pictures a sample has. Further layers, such as a second view, do not count."""
        pictures, is_inside = 0, False
        for start, end in self._split(sample, 0, _LENGTH):
            require(end - start > 1, "a unit that is cut off")
            kind = sample[start] >> 1 & 63
            if sample[start] & 1 or sample[start + 1] >> 3:
                continue
            if kind < _HEVC_SLICES_END:
                is_first = start + 2 < end and sample[start + 2] & 0x80
                pictures += bool(is_first or not is_inside)
                is_inside = True
            elif kind in _HEVC_BEFORE_PICTURE:
                is_inside = False
                self._read_parameters(sample[start:end])
        return pictures

    def _read_parameters(self, unit: bytes) -> None:
        is_first_layer = len(unit) > 1 and not unit[0] & 1 and not unit[1] >> 3
        if is_first_layer and unit[0] >> 1 & 63 in _HEVC_PARAMETERS and self._is_new(unit):
            self.picture_seconds = max(self.picture_seconds, hevc_parameters.picture_seconds(unit))
