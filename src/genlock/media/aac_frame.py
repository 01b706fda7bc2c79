"""Find where a frame of AAC-LC ends. A frame does not state its length, so its code words are followed to the end.

Only what encoders write is followed: about the rest, decoders disagree where a frame ends.

Each method follows one element of the syntax in ISO/IEC 14496-3, 4.4.2:

    _read           raw_data_block                 _channel        individual_channel_stream
    _fill           fill_element                   _sections       section_data
    _data           data_stream_element            _scale_factors  scale_factor_data
    _pair           channel_pair_element           _noise_shaping  tns_data
    _window         ics_info                       _coefficients   spectral_data
"""

import struct
from itertools import repeat

from genlock.media.aac_codebooks import (
    ESCAPES,
    ESCAPES_SHIFT,
    SCALE_WORD_BITS,
    STEP_MASK,
    WORD_BITS,
    band_starts,
    scale_steps,
    word_steps,
)
from genlock.media.budget import require

#: elements of a frame (SCE, CPE, LFE, DSE, FIL, END): one channel, two channels, low frequencies, data, filling, end
_SINGLE, _PAIR, _LOW, _DATA, _FILL, _END = 0, 1, 3, 4, 6, 7
_ELEMENTS_MAX = 64
#: the extension for dynamic range control: some decoders read it to its own end, past the end of its element
_DYNAMIC_RANGE = 11
#: the extensions for spectral band replication: some decoders do not skip one that precedes all channels
_REPLICATION = (13, 14)
_SHORT_WINDOWS = 2
#: codebooks without coefficients: nothing, noise, and intensity
_ZERO, _RESERVED, _NOISE = 0, 12, 13
_NOISE_BITS = 9
#: code words of the codebooks up to this one hold four coefficients, others two
_QUADS = 4
_ESCAPE_ONES_MAX = 8
#: a word of the reader has 32 bits, of which up to 7 come before the current position
_WORD = 32


class FrameReader:
    """Follows the bits of one sample, which must hold one frame."""

    def __init__(self, sample: bytes, rate_index: int) -> None:
        self._rate_index = rate_index
        self._end = 8 * len(sample)
        #: in bits
        self.position = 0
        padded = sample + bytes(8)
        # the 32 bits from each byte on
        self._words = [0] * (len(sample) + 4)
        for offset in range(4):
            count = (len(self._words) - offset + 3) // 4
            self._words[offset::4] = struct.unpack_from(f">{count}I", padded, offset)

    def end(self) -> int:
        """Return how many bytes the frame has. Raises NotMeasured if it has something unknown, or is cut off."""
        try:
            self._read()
        except IndexError:
            require(condition=False, what="a frame that is cut off")
        require(self.position <= self._end, "a frame that is cut off")
        return (self.position + 7) // 8

    def _take(self, bits: int) -> int:
        at = self.position
        self.position = at + bits
        return self._words[at >> 3] >> (_WORD - (at & 7) - bits) & (1 << bits) - 1

    def _read(self) -> None:
        channels: set[tuple[int, int]] = set()
        for _ in range(_ELEMENTS_MAX):
            kind = self._take(3)
            if kind == _END:
                return
            tag = self._take(4)
            if kind == _FILL:
                self._fill(tag, has_channels=bool(channels))
                continue
            if kind == _DATA:
                self._data()
                continue
            require(kind in (_SINGLE, _PAIR, _LOW) and (kind, tag) not in channels, "an element that is not known")
            channels.add((kind, tag))
            if kind == _PAIR:
                self._pair()
            else:
                self._channel(None)
        require(condition=False, what="too many elements in a frame")

    def _fill(self, count: int, *, has_channels: bool) -> None:
        if count == 15:  # noqa: PLR2004 - more of the count follows
            count += self._take(8) - 1
        if count:
            extension = self._take(4)
            require(extension != _DYNAMIC_RANGE, "dynamic range control")
            require(has_channels or extension not in _REPLICATION, "an extension before the first channel")
            self.position += 8 * count - 4

    def _data(self) -> None:
        is_aligned, count = self._take(1), self._take(8)
        if count == 255:  # noqa: PLR2004 - more of the count follows
            count += self._take(8)
        if is_aligned:
            self.position += -self.position % 8
        self.position += 8 * count

    def _pair(self) -> None:
        window = None
        if self._take(1):
            window = self._window()
            mask = self._take(2)
            require(mask < 3, "a mask that is not known")  # noqa: PLR2004
            if mask == 1:
                self.position += len(window.groups) * window.bands
        self._channel(window)
        self._channel(window)

    def _window(self) -> "Window":
        require(not self._take(1), "a reserved bit")
        shape = self._take(2)
        self._take(1)  # the form of its slopes
        is_short = shape == _SHORT_WINDOWS
        groups = [1]
        bands = self._take(4 if is_short else 6)
        if is_short:
            for _ in range(7):  # whether each further window belongs to the group before it
                if self._take(1):
                    groups[-1] += 1
                else:
                    groups.append(1)
        else:
            require(not self._take(1), "prediction")
        starts = band_starts(self._rate_index, is_short=is_short)
        require(bands < len(starts), "more bands than there are")
        return Window(groups, bands, starts, is_short=is_short)

    def _channel(self, window: "Window | None") -> None:
        self._take(8)  # global gain
        window = window or self._window()
        sections = [self._sections(window) for _ in window.groups]
        self._scale_factors(sections)
        if self._take(1):
            require(not window.is_short, "pulse data in short windows")
            pulses = self._take(2) + 1
            self.position += 6 + 9 * pulses  # the first band; a distance and a height each
        if self._take(1):
            self._noise_shaping(window)
        require(not self._take(1), "gain control")
        for windows, group in zip(window.groups, sections, strict=True):
            for book, first, last in group:
                self._coefficients(book, windows * (window.starts[last] - window.starts[first]))

    def _sections(self, window: "Window") -> list[tuple[int, int, int]]:
        """Return runs of bands with the same codebook: the codebook, the first band, and the one after the last."""
        bits = 3 if window.is_short else 5
        sections, band = [], 0
        while band < window.bands:
            book, first = self._take(4), band
            require(book != _RESERVED, "a codebook that is not known")
            while (length := self._take(bits)) == (1 << bits) - 1:
                band += length
            band += length
            require(first < band <= window.bands, "a section that does not end where it should")
            sections.append((book, first, band))
        return sections

    def _scale_factors(self, groups: list[list[tuple[int, int, int]]]) -> None:
        words, steps, at = self._words, scale_steps(), self.position
        mask, shift, is_first_noise = (1 << SCALE_WORD_BITS) - 1, _WORD - SCALE_WORD_BITS, True
        for book, first, last in (section for group in groups for section in group):
            if book == _ZERO:
                continue
            count = last - first
            if book == _NOISE and is_first_noise:
                at, count, is_first_noise = at + _NOISE_BITS, count - 1, False
            for _ in repeat(None, count):
                at += steps[words[at >> 3] >> (shift - (at & 7)) & mask]
        self.position = at

    def _noise_shaping(self, window: "Window") -> None:
        for _ in range(8 if window.is_short else 1):
            filters = self._take(1 if window.is_short else 2)
            resolution = self._take(1) if filters else 0
            for _ in range(filters):
                order = self._take(7 if window.is_short else 11) & (7 if window.is_short else 31)
                require(order <= 12, "a filter that is too long")  # noqa: PLR2004
                if order:
                    is_compressed = self._take(2) & 1
                    self.position += order * (resolution + 3 - is_compressed)

    def _coefficients(self, book: int, count: int) -> None:
        if book in (_ZERO, *range(_NOISE, 16)):
            return
        if book == ESCAPES:
            self._coefficients_with_escapes(count // 2)
            return
        words, steps, at, shift, mask = (
            self._words,
            word_steps(book),
            self.position,
            _WORD - WORD_BITS,
            (1 << WORD_BITS) - 1,
        )
        for _ in repeat(None, count // (4 if book <= _QUADS else 2)):
            at += steps[words[at >> 3] >> (shift - (at & 7)) & mask]
        self.position = at

    def _coefficients_with_escapes(self, count: int) -> None:
        words, steps, shift, mask = self._words, word_steps(ESCAPES), _WORD - WORD_BITS, (1 << WORD_BITS) - 1
        for _ in repeat(None, count):
            at = self.position
            step = steps[words[at >> 3] >> (shift - (at & 7)) & mask]
            self.position = at + (step & STEP_MASK)
            for _ in range(step >> ESCAPES_SHIFT):
                ones = 0
                while self._take(1):
                    ones += 1
                require(ones <= _ESCAPE_ONES_MAX, "a value that is too large")
                self.position += ones + 4


class Window:
    """How the coefficients of a channel are ordered."""

    def __init__(self, groups: list[int], bands: int, starts: tuple[int, ...], *, is_short: bool) -> None:
        #: how many windows each group has
        self.groups = groups
        #: how many bands of each window are coded
        self.bands = bands
        self.starts = starts
        self.is_short = is_short
