"""The Huffman codes and the bands of AAC (ISO/IEC 14496-3, 4.5.4 and 4.A): what the length of a frame depends on."""

from functools import cache

#: the bits of the longest code word of a spectral codebook, and of the codebook of scale factors
WORD_BITS, SCALE_WORD_BITS = 16, 19
#: the codebook with escapes: larger values follow their code word
ESCAPES = 11
#: A byte in the table of that codebook has the length of a word in its low bits, and the number of its escapes above.
STEP_MASK, ESCAPES_SHIFT = 31, 5

# For each length, the code words of that length in their order, each as the number of sign bits that follow it.
# In every codebook, shorter code words come first. a, b, c: one sign and one escape, two and one, two and two.
_CODEBOOKS = {
    1: "1:0 5:00000000 7:000000000000000000000000 9:000000000000000000000000 10:00000000 11:0000000000000000",
    2: ("3:0 4:0 5:0000000 6:000000000000000000000000 7:000000000000000 8:0000000000000000000 9:00000000000000"),
    3: (
        "1:0 4:1111 5:22 6:222323 7:433 8:11223 9:232331221224334 10:323244332333223 11:24334423 12:333334444"
        " 13:223 14:343 15:44432 16:33"
    ),
    4: ("4:4333312022 5:221211 7:444433333 8:333333322222222222211 9:11444444 10:33333333343334 11:44222222433 12:33"),
    5: (
        "1:0 4:0000 5:0000 7:0000 8:000000000000 9:000000000000 10:000000000000 11:000000000000000000 12:0000"
        "000000 13:0000"
    ),
    6: ("4:000000000 6:0000000000000000 7:0000000000000 8:00000000 9:00000000000000000000000 10:00000000 11:0000"),
    7: "1:0 3:11 4:2 6:2211 7:22211 8:2222222211 9:22212122222222 10:211222222222222 11:11222222 12:2222",
    8: "3:2 4:21212 5:0112222 6:2222211222 7:22222221212222 8:222121222222222 9:22121222 10:2112",
    9: (
        "1:0 3:11 4:2 6:2211 7:222 8:11222222 9:22112222222 10:12122222222122222222 11:1222122221222211222222"
        "222222212 12:22122222222222222222222122122222221222 13:22222222222212212222122222222222 14:222222222"
        "22222 15:2222"
    ),
    10: (
        "4:222 5:21122222 6:11222202211222 7:22222222212122222 8:2222222121222222222222222 9:2221222221222222"
        "222222222221212 10:22222212222221222222222222222221212122222 11:2222222222121222122212 12:22222122"
    ),
    11: (
        "4:02 5:c11222 6:2221212 7:2222221122222222 8:2222222bbbbb2b121b2bbbb22222bb22bbb22b2bbb2b22bb2221bb2"
        "2221 9:2bb22b2b2222222b221222222122222222222222122222222222a22 10:2222a21222222222222222222222222222"
        "2221222222222222222222122222222222222222222222222211222222222 11:22222222222222222122121222122222112"
        "22212212 12:112112"
    ),
}
_SIGNS = {"0": 0, "1": 1, "2": 2, "3": 3, "4": 4, "a": 1, "b": 2, "c": 2}
_ESCAPES = {"a": 1, "b": 1, "c": 2}
#: the number of code words for scale factors, by their length in bits
_SCALE_WORDS = {
    1: 1, 3: 1, 4: 3, 5: 2, 6: 4, 7: 3, 8: 5, 9: 4, 10: 6, 11: 6, 12: 6, 13: 5, 14: 8, 15: 4, 16: 7, 17: 3, 18: 7,
    19: 46,
}  # fmt: skip
#: the widths of the bands of one long window and of one short window, by the index of the sampling rate
_LONG = (
    *["4x14 8x5 12x5 16x2 24x1 28x1 36x1 44x1 64x11"] * 2,
    "4x14 8x4 12x3 16x3 20x1 24x2 28x1 36x1 40x18",
    *["4x10 8x7 12x4 16x2 20x2 24x2 28x2 32x19 96x1"] * 2,
    "4x10 8x7 12x4 16x2 20x2 24x2 28x2 32x22",
    *["4x11 8x10 12x4 16x3 20x2 24x2 28x2 32x1 36x2 40x1 44x1 48x1 52x2 64x5"] * 2,
    *["8x11 12x9 16x4 20x3 24x2 28x2 32x1 36x1 40x2 44x1 48x1 52x1 56x1 60x1 64x3"] * 3,
    *["12x13 16x7 20x4 24x3 28x2 32x1 36x2 40x1 44x1 48x1 52x1 56x1 60x1 64x1 80x1"] * 2,
)
_SHORT = (
    *["4x6 8x3 16x1 28x1 36x1"] * 3,
    *["4x5 8x3 12x3 16x3"] * 3,
    *["4x7 8x3 12x2 16x2 20x1"] * 2,
    *["4x8 8x2 12x2 16x1 20x2"] * 3,
    *["4x7 8x4 12x1 16x1 20x2"] * 2,
)


@cache
def word_steps(book: int) -> bytes:
    """Return the table of a spectral codebook: for the next WORD_BITS bits, the length of the word with its signs.

    For the codebook ESCAPES, the number of escapes is in the same byte.
    """
    table = bytearray()
    for group in _CODEBOOKS[book].split():
        length, words = group.split(":")
        for word in words:
            step = int(length) + _SIGNS[word] | _ESCAPES.get(word, 0) << ESCAPES_SHIFT
            table += bytes([step]) * (1 << WORD_BITS - int(length))
    return bytes(table)


@cache
def scale_steps() -> bytes:
    """Return the table of the codebook of scale factors: for the next SCALE_WORD_BITS bits, the length of the word."""
    return b"".join(bytes([length]) * (count << SCALE_WORD_BITS - length) for length, count in _SCALE_WORDS.items())


@cache
def band_starts(rate_index: int, *, is_short: bool) -> tuple[int, ...]:
    """Return where the bands of a window begin, in coefficients; the last number is where the last band ends."""
    starts = [0]
    for run in (_SHORT if is_short else _LONG)[rate_index].split():
        width, count = map(int, run.split("x"))
        starts += [starts[-1] + width * number for number in range(1, count + 1)]
    return tuple(starts)
