"""Spellings: how a text is compared with names and words that users write in another script, or with a typo."""

import re
import unicodedata
from collections.abc import Iterable
from functools import lru_cache

#: what is read of a text: the cost of a search must not depend on what a user sends
TEXT_LENGTH, WORDS_MAX, WORD_LENGTH = 200, 12, 24
_SEPARATOR = re.compile(r"[\W_]+")
_CYRILLIC = re.compile(r"[а-я]")
_LATIN = dict(
    zip(
        "абвгдезийклмнопрстуфхцыэ",
        (*"abvgdeziiklmnoprstufh", "ts", "i", "e"),
        strict=True,
    )
) | {"ж": "zh", "ч": "ch", "ш": "sh", "щ": "sh", "ъ": "", "ь": "", "ю": "u", "я": "ia"}  # fmt: skip
#: letters and groups of letters that sound alike, so that "flux" and "флюкс" become the same
_SOUNDS = (
    ("dzh", "j"), ("sch", "sh"), ("ya", "ia"), ("yu", "u"), ("ph", "f"), ("ck", "k"), ("ee", "i"), ("ea", "i"),
    ("oo", "u"), ("qu", "kv"), ("q", "k"), ("w", "v"), ("x", "ks"), ("y", "i"), ("ce", "se"), ("ci", "si"),
    ("ge", "je"), ("gi", "ji"),
)  # fmt: skip
_HARD_C = re.compile(r"c(?!h)")
_DOUBLED = re.compile(r"([a-z])\1")
_KEYS_LATIN, _KEYS_CYRILLIC = "qwertyuiop[]asdfghjkl;'zxcvbnm,.", "йцукенгшщзхъфывапролджэячсмитьбю"
_OTHER_LAYOUT = str.maketrans(_KEYS_LATIN + _KEYS_CYRILLIC, _KEYS_CYRILLIC + _KEYS_LATIN)
#: the words of the catalog and its vocabulary are about two thousand
_SOUNDS_KEPT = 8192
#: from this length on, a word may differ from the meant one by this many letters
_TYPOS = ((8, 2), (4, 1))


def plain(text: str) -> str:
    """Return the beginning of a text in small letters, with one spelling of letters that users write in two ways."""
    return text[:TEXT_LENGTH].lower().replace("ё", "е")


def words(text: str) -> list[str]:
    """Return the first words of a text."""
    compatible = plain(unicodedata.normalize("NFKC", text[:TEXT_LENGTH]))
    return [word[:WORD_LENGTH] for word in _SEPARATOR.split(compatible) if word][:WORDS_MAX]


def is_cyrillic(word: str) -> bool:
    return _CYRILLIC.search(word) is not None


@lru_cache(_SOUNDS_KEPT)
def sound(word: str) -> str:
    """Return how a word sounds, in Latin letters: the same for a name and its usual spelling in Cyrillic."""
    text = "".join(_LATIN.get(letter, letter) for letter in word)
    for letters, same in _SOUNDS:
        text = text.replace(letters, same)
    text = _DOUBLED.sub(r"\1", _HARD_C.sub("k", text))
    return text[:-1] if len(text) > 4 and text.endswith("e") else text  # noqa: PLR2004 - short names end with a spoken e


def in_other_layout(text: str) -> str:
    """Return what the same keys write in the other layout of the keyboard: `rkbyu` is "клинг"."""
    return text[:TEXT_LENGTH].lower().translate(_OTHER_LAYOUT)


def typos_allowed(word: str) -> int:
    return next((typos for length, typos in _TYPOS if len(word) >= length), 0)


def closest(word: str, known: Iterable[str]) -> str | None:
    """Return the known word that is meant by one with typos; None if none is similar."""
    typos = typos_allowed(word)
    near = (candidate for candidate in known if typos and could_be_typo(word, candidate, typos))
    distance, found = min(((edit_distance(word, candidate), candidate) for candidate in near), default=(typos + 1, ""))
    return found if distance <= typos else None


def could_be_typo(word: str, other: str, typos: int) -> bool:
    """Whether two words are similar enough to compare letter by letter: typos rarely change both ends of a word."""
    return abs(len(word) - len(other)) <= typos and (word[0] == other[0] or word[-1] == other[-1])


def edit_distance(word: str, other: str) -> int:
    """Return how many letters are wrong, missing, additional or exchanged with their neighbour."""
    before: list[int] = []
    row = list(range(len(other) + 1))
    for i, letter in enumerate(word, 1):
        older, before, row = before, row, [i]
        for j, wanted in enumerate(other, 1):
            cost = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (letter != wanted))
            if i > 1 and j > 1 and letter == other[j - 2] and word[i - 2] == wanted:
                cost = min(cost, older[j - 2] + 1)
            row.append(cost)
    return row[-1]
