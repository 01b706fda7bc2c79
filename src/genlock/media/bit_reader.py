"""Read the parameters of H.264 and HEVC, whose numbers have any number of bits."""

from genlock.media.budget import require

#: a longer prefix is no number of a header
_ZEROS_MAX = 31
_OTHER_RATIO = 255


class BitReader:
    """Reads a unit from its first bit on, without the bytes that only keep start codes apart."""

    def __init__(self, unit: bytes) -> None:
        plain = unit.replace(b"\0\0\3", b"\0\0")
        self._value = int.from_bytes(plain)
        self.left = 8 * len(plain)

    def take(self, bits: int) -> int:
        """Return the next bits. Raises NotMeasured if there are fewer."""
        self.left -= bits
        require(self.left >= 0, "a header that is cut off")
        return self._value >> self.left & (1 << bits) - 1

    def number(self) -> int:
        """Return an unsigned Exp-Golomb code: as many zeros as bits follow the first one."""
        zeros = self.left - (self._value & (1 << self.left) - 1).bit_length()
        require(zeros <= _ZEROS_MAX, "a number that is too large")
        return self.take(2 * zeros + 1) - 1

    def signed(self) -> int:
        """Return a signed Exp-Golomb code, in which 0, 1, -1, 2 and -2 are the shortest."""
        code = self.number()
        return (code + 1) // 2 if code % 2 else -(code // 2)

    def skip_numbers(self, count: int) -> None:
        for _ in range(count):
            self.number()

    def skip_appearance(self) -> None:
        """Skip the shape of pixels, the edges, the colours, and where colours lie: the same in both codecs."""
        if self.take(1) and self.take(8) == _OTHER_RATIO:
            self.take(32)
        if self.take(1):
            self.take(1)
        if self.take(1):
            self.take(4)
            if self.take(1):
                self.take(24)
        if self.take(1):
            self.skip_numbers(2)

    def tick_seconds(self) -> float:
        """Return the duration of the unit of time; 0.0 if it is not stated."""
        if not self.take(1):
            return 0.0
        units, per_second = self.take(32), self.take(32)
        return units / per_second if per_second else 0.0
