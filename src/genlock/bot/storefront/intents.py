"""Recognises what a typed text asks for: a song, a video, a photo without its background."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from genlock.bot.storefront.spelling import WORD_LENGTH, WORDS_MAX, is_cyrillic, plain, sound
from genlock.domain.catalog import Category
from genlock.domain.wish import Intent, Vocabulary

#: a wish is named among the first words of a text, not counting fillers
HEAD_WORDS = 4
#: words of another script are compared by their sound from this length on: "trek" is also an English word
SOUND_LENGTH = 5
#: how far the colon before a spoken text may be from the words of the wish, in characters
COLON_WITHIN = 40
_WORD = re.compile(r"[^\W_]+")
_BEFORE_TEXT = " \t\n:,;.\u2013\u2014-«\"'“„"
_AFTER_TEXT = " \t\n»\"'”“"

Phrase = tuple[str, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Request:
    """What a text asks for."""

    intent: Intent
    #: the description of what is wanted; empty if the text only names the wish
    text: str


@dataclass(frozen=True, slots=True)
class _Word:
    text: str
    end: int


class IntentReader:
    """Finds the intent of a text. The cost is bounded: only the first words of a text are read."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._fillers, self._stops = frozenset(vocabulary.fillers), frozenset(vocabulary.stops)
        #: phrases by their first word, by its sound, and those whose first word is the beginning of a word
        self._by_word: dict[str, list[tuple[Phrase, Intent]]] = {}
        self._by_sound: dict[str, list[tuple[Phrase, Intent]]] = {}
        self._by_stem: list[tuple[Phrase, Intent]] = []
        #: the words of each category's phrases
        self._words: dict[str, set[str]] = {}
        for intent in vocabulary.intents:
            for text in intent.phrases:
                self._add(intent, text)

    def _add(self, intent: Intent, text: str) -> None:
        phrase = tuple(word for word in plain(text).split() if word not in self._fillers)
        if not phrase:
            return
        self._words.setdefault(intent.category, set()).update(phrase)
        if phrase[0].endswith("*"):
            self._by_stem.append((phrase, intent))
            return
        self._by_word.setdefault(phrase[0], []).append((phrase, intent))
        if len(phrase[0]) >= SOUND_LENGTH:
            self._by_sound.setdefault(sound(phrase[0]), []).append((phrase, intent))

    def read(self, text: str) -> Request | None:
        """Return what the text asks for; None if it names no wish."""
        words = [word for word in self._read_words(text) if word.text not in self._fillers]
        for start in range(min(len(words), HEAD_WORDS)):
            if words[start].text in self._stops:
                return None
            if found := self._find(words[start:]):
                phrase, intent = found
                rest = [*words[:start], *words[start + len(phrase) :]]
                if intent.spoken and not start:
                    return Request(intent=intent, text=self._spoken(text, words[len(phrase) - 1].end, intent))
                bare = all(self._names_wish(word.text, intent) for word in rest)
                return Request(intent=intent, text="" if bare else text.strip())
        return None

    def _read_words(self, text: str) -> list[_Word]:
        found = _WORD.finditer(plain(text))
        return [_Word(match[0][:WORD_LENGTH], match.end()) for match in found][: 2 * WORDS_MAX]

    def _find(self, words: list[_Word]) -> tuple[Phrase, Intent] | None:
        """Return the longest phrase that the words begin with."""
        fitting = [candidate for candidate in self._candidates(words[0].text) if _matches(candidate[0], words)]
        return max(fitting, key=lambda candidate: len(candidate[0]), default=None)

    def _candidates(self, word: str) -> Iterator[tuple[Phrase, Intent]]:
        yield from self._by_word.get(word, ())
        yield from (candidate for candidate in self._by_stem if _is_word(candidate[0][0], word))
        if len(word) >= SOUND_LENGTH:
            yield from self._by_sound.get(sound(word), ())

    def _names_wish(self, word: str, intent: Intent) -> bool:
        """Whether a word only names what is wanted, or what it is made from, and describes nothing."""
        named = self._words[intent.category] | self._words.get(Category.TEXT_TO_IMAGE.value, set())
        return word in self._stops or any(_is_word(stem, word) for stem in named)

    def _spoken(self, text: str, end: int, intent: Intent) -> str:
        """Return what is to be spoken: what follows the words of the wish, or a colon near them."""
        head, colon, tail = text[end:].partition(":")
        spoken = (tail if colon and len(head) <= COLON_WITHIN else text[end:]).lstrip(_BEFORE_TEXT).rstrip(_AFTER_TEXT)
        bare = all(self._names_wish(word.text, intent) for word in self._read_words(spoken))
        return "" if bare else spoken


@lru_cache(2)
def intent_reader(vocabulary: Vocabulary) -> IntentReader:
    """Return the reader of this vocabulary: it is the same for all bots and after every edit of a model."""
    return IntentReader(vocabulary)


def _matches(phrase: Phrase, words: list[_Word]) -> bool:
    return len(phrase) <= len(words) and all(
        _is_word(stem, word.text) for stem, word in zip(phrase, words, strict=False)
    )


def _is_word(pattern: str, word: str) -> bool:
    """Whether a word is the pattern, one of its forms, or the same word in the other script."""
    if pattern.endswith("*"):
        return word.startswith(pattern[:-1])
    if pattern == word:
        return True
    another_script = len(word) >= SOUND_LENGTH and is_cyrillic(pattern) != is_cyrillic(word)
    return another_script and sound(pattern) == sound(word)
