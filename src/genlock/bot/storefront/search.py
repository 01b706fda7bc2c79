"""Searches models by name, category and ability; understands users' own words, other scripts and typos."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from genlock.bot.storefront.identity_key import IdentityKey
from genlock.bot.storefront.spelling import closest, in_other_layout, sound, words
from genlock.domain.catalog import Category, Model
from genlock.domain.wish import Vocabulary

#: shorter texts are not looked for within a title, and shorter words only at the start of a word
TITLE_PART, WORD_PART = 3, 4
#: a text of more words is not a search with typos
TYPO_WORDS = 3
#: a name before a description has this many words: one alone may be a word of the description
NAME_WORDS = 2
#: parts of category names that say nothing
_CONNECTING = frozenset({"to"})
#: several times the models of a catalog: all bots of a service share them, and each edit of a model makes one more
ENTRIES_KEPT = 1024


@dataclass(frozen=True, kw_only=True, slots=True)
class _Entry:
    model: Model
    #: the title as it sounds, in one word
    title: str
    title_words: tuple[str, ...]
    #: words of the title, the vendor, the ids
    names: frozenset[str]
    #: words that name what it does
    topics: frozenset[str]
    categories: frozenset[str]


@dataclass(frozen=True, kw_only=True, slots=True)
class _Phrase:
    sounds: tuple[str, ...]
    category: str


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class _KnownWords:
    """What a vocabulary says, as it sounds. It equals only itself."""

    spellings: Mapping[str, list[str]]
    ignored: frozenset[str]
    phrases: Sequence[_Phrase]
    #: the words that name each category
    topics: Mapping[str, frozenset[str]]
    #: the words that name each type of file
    inputs: Mapping[str, frozenset[str]]


class ModelSearch:
    """An index of models. A search costs the same whatever a user sends."""

    def __init__(self, models: Sequence[Model], vocabulary: Vocabulary, *, recommended: Iterable[str] = ()) -> None:
        self._known = known = _known_words(vocabulary)
        self._entries = [_entry(IdentityKey(model), known) for model in models]
        self._positions = {model_id: number for number, model_id in reversed(list(enumerate(recommended)))}
        self._names = frozenset[str]().union(*(entry.names for entry in self._entries))
        self._topics = frozenset[str]().union(*(entry.topics for entry in self._entries))

    def find(self, text: str, *, topics: bool = True) -> list[Model]:
        """Return the models that a text names or describes: with this title, else with every word of it.

        Without `topics`, only names are looked for.
        """
        asked = self._read(text)
        named = self._titled(asked) if not topics or not all(word in self._topics for word in asked) else []
        exact = self._exactly(text)
        return (
            [*exact, *(model for model in named if model not in exact)]
            or self._with_every_word(asked, topics=topics)
            or self._with_every_word(self._read(in_other_layout(text)), topics=topics)
            or (self._with_every_word(self._corrected(asked), topics=topics) if len(asked) <= TYPO_WORDS else [])
        )

    def named(self, text: str) -> list[Model]:
        """Return the models that a text names, if it consists of nothing else."""
        asked = self._read(text)
        if not asked or len("".join(asked)) < TITLE_PART:
            return []
        if exact := self._exactly(text):
            return exact
        titled = [entry for entry in self._entries if "".join(asked) == entry.title]
        return self._ordered(titled or [entry for entry in self._entries if all(word in entry.names for word in asked)])

    def named_before(self, text: str) -> tuple[Model, str] | None:
        """Return the model whose title a description begins with, and the description."""
        parts = text.split()
        sounds = [sound("".join(words(part))) for part in parts[: 2 * NAME_WORDS + 2]]
        best: tuple[int, Model] | None = None
        for entry in self._entries:
            length = len(entry.title_words)
            fits = length >= NAME_WORDS and tuple(sounds[:length]) == entry.title_words and length < len(parts)
            if fits and (best is None or length > best[0]):
                best = length, entry.model
        return (best[1], text.split(maxsplit=best[0])[-1]) if best else None

    def _read(self, text: str) -> list[str]:
        """Return the words of a search as they sound, without those that say nothing."""
        given = words(text)
        sounds = [sound(word) for word in given if word not in self._known.ignored] or [sound(word) for word in given]
        whole = self._known.spellings.get("".join(sounds))
        return whole or [part for word in sounds for part in self._known.spellings.get(word, [word])]

    def _exactly(self, text: str) -> list[Model]:
        """Return the models with this very title, which may have words that a search leaves out."""
        joined = "".join(_sounds(text))
        return self._ordered(entry for entry in self._entries if len(joined) >= TITLE_PART and joined == entry.title)

    def _titled(self, typed_words: Sequence[str]) -> list[Model]:
        joined = "".join(typed_words)
        return self._ordered(entry for entry in self._entries if len(joined) >= TITLE_PART and joined in entry.title)

    def _with_every_word(self, typed_words: Sequence[str], *, topics: bool) -> list[Model]:
        left, categories = self._without_phrases(typed_words) if topics else (list(typed_words), [])
        if not left and not categories:
            return []
        return self._ordered(
            entry
            for entry in self._entries
            if all(category in entry.categories for category in categories)
            and all(_is_named(entry, word) or (topics and word in entry.topics) for word in left)
        )

    def _without_phrases(self, typed_words: Sequence[str]) -> tuple[list[str], list[str]]:
        """Return the words that are left, and the categories that phrases of several words have named."""
        left, categories = list(typed_words), []
        for phrase in self._known.phrases:
            length = len(phrase.sounds)
            starts = (at for at in range(len(left) - length + 1) if tuple(left[at : at + length]) == phrase.sounds)
            if (start := next(starts, None)) is not None:
                del left[start : start + length]
                categories.append(phrase.category)
        return left, categories

    def _corrected(self, typed_words: Sequence[str]) -> list[str]:
        """Return the words with their typos corrected: to a name if there is a similar one, else to a topic."""
        return [self._correct(word) for word in typed_words]

    def _correct(self, word: str) -> str:
        if word in self._names or word in self._topics:
            return word
        return closest(word, self._names) or closest(word, self._topics) or word

    def _ordered(self, entries: Iterable[_Entry]) -> list[Model]:
        """Return models with those that the menu recommends first; else in their order."""
        last = len(self._positions)
        return sorted((entry.model for entry in entries), key=lambda model: self._positions.get(model.id, last))


def _sounds(text: str) -> list[str]:
    return [sound(word) for word in words(text)]


def _is_named(entry: _Entry, word: str) -> bool:
    """Whether a word is a name of the model, the beginning of one, or a part of its title."""
    begun = len(word) > 1 and any(name.startswith(word) for name in entry.names)
    return begun or word in entry.names or (len(word) >= WORD_PART and word in entry.title)


@lru_cache(ENTRIES_KEPT)
def _entry(key: IdentityKey[Model], known: _KnownWords) -> _Entry:
    model = key.value
    categories = [category.value for category in (model.category, *model.also)]
    title = tuple(_sounds(model.title))
    ids = (model.id, *model.aliases)
    return _Entry(
        model=model,
        title="".join(title),
        title_words=title,
        names=frozenset((*title, *_sounds(model.vendor), *(word for model_id in ids for word in _sounds(model_id)))),
        topics=frozenset().union(
            *(known.topics[category] for category in categories),
            *(known.inputs.get(field.type.value, frozenset()) for field in model.fields if not field.advanced),
        ),
        categories=frozenset(categories),
    )


@lru_cache(2)
def _known_words(vocabulary: Vocabulary) -> _KnownWords:
    """Read a vocabulary: it is the same for all bots and after every edit of a model."""
    ignored = frozenset((*vocabulary.fillers, *vocabulary.stops))
    return _KnownWords(
        spellings={sound("".join(words(spelling))): _sounds(name) for spelling, name in vocabulary.spellings},
        ignored=ignored,
        phrases=_phrases(vocabulary, ignored),
        topics=_topics(vocabulary),
        inputs={kind: frozenset(map(sound, known)) for kind, known in vocabulary.inputs.items()},
    )


def _topics(vocabulary: Vocabulary) -> dict[str, frozenset[str]]:
    """Return the words that name each category: those of its id, and the phrases of one word."""
    found = {category.value: {sound(part) for part in category.value.split("-")} - _CONNECTING for category in Category}
    for intent in vocabulary.intents:
        single = (phrase.rstrip("*") for phrase in intent.phrases if " " not in phrase)
        found[intent.category].update(sound("".join(words(word))) for word in single)
    return {category: frozenset(known) for category, known in found.items()}


def _phrases(vocabulary: Vocabulary, ignored: Collection[str]) -> list[_Phrase]:
    """Return the phrases of several words, the longest first; words that a search leaves out are left out here too."""
    found = [
        _Phrase(sounds=sounds, category=intent.category)
        for intent in vocabulary.intents
        for phrase in intent.phrases
        if len(sounds := tuple(sound(word) for word in words(phrase) if word not in ignored)) > 1
    ]
    return sorted(found, key=lambda phrase: -len(phrase.sounds))
