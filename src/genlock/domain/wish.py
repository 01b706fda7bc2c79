"""What users wish for: the entries of the menu, and the words by which a typed wish is recognised.

The data is in `genlock.catalog`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, kw_only=True, slots=True)
class Wish:
    """An entry of the menu."""

    name: str
    icon: str
    #: the categories of its models, the main one first
    categories: tuple[str, ...]
    #: ids of the models to recommend, the best choice for most users first
    popular: tuple[str, ...] = ()
    #: a text alone is enough for an order
    from_text: bool = False
    #: the first screen has an example of it
    example: bool = False
    #: whether settings that have a default are asked for, too: the voice is half of what the user wants
    asks_settings: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Intent:
    """Words that say what a text asks for."""

    category: str
    #: phrases of all languages; a word that ends with `*` stands for every word that begins so
    phrases: tuple[str, ...]
    #: ids of the models for it; empty: those that the category's wish recommends
    models: tuple[str, ...] = ()
    #: the model speaks the text as it is, so the words of the wish itself are left out
    spoken: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Vocabulary:
    """The words by which the bot understands wishes and searches."""

    intents: tuple[Intent, ...] = ()
    #: words before the wish itself, such as "make me a"
    fillers: tuple[str, ...] = ()
    #: words after which a text describes details, such as "about"
    stops: tuple[str, ...] = ()
    #: how users spell names, where the spelling alone does not tell: pairs of a spelling and the name
    spellings: tuple[tuple[str, str], ...] = ()
    #: what users call the files that a model takes, by the type of its field
    inputs: Mapping[str, tuple[str, ...]] = field(default_factory=dict, hash=False)
