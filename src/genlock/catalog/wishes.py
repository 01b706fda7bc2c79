"""Loads the entries of the menu and the words by which the bot understands wishes and searches."""

from collections.abc import Iterable, Mapping
from pathlib import Path

from genlock.catalog.reader import check, parse
from genlock.catalog.schema import VocabularyFile, WishesFile
from genlock.domain.catalog import Model
from genlock.domain.errors import InvalidCatalog
from genlock.domain.wish import Intent, Vocabulary, Wish

WISHES = "wishes.toml"
VOCABULARY = "vocabulary.toml"


def load_wishes(path: Path, models: Mapping[str, Model]) -> tuple[Wish, ...]:
    """Load the entries of the menu of a folder of models; none if it has no such file. Raises InvalidCatalog."""
    if not path.exists():
        return ()
    tables = check(WishesFile, parse(path), path.name).root
    for name, table in tables.items():
        _check_models(f"{path.name}: {name}: popular", table.popular, models)
    return tuple(
        Wish(
            name=name,
            icon=table.icon,
            categories=tuple(category.value for category in table.categories),
            popular=tuple(table.popular),
            from_text=table.from_text,
            example=table.example,
            asks_settings=table.asks_settings,
        )
        for name, table in tables.items()
    )


def load_vocabulary(path: Path, models: Mapping[str, Model]) -> Vocabulary:
    """Load the words of a folder of models; none if it has no such file. Raises InvalidCatalog."""
    if not path.exists():
        return Vocabulary()
    file = check(VocabularyFile, parse(path), path.name)
    for number, table in enumerate(file.intents, 1):
        _check_models(f"{path.name}: intent {number}", table.models, models)
    return Vocabulary(
        intents=tuple(
            Intent(
                category=table.category.value,
                phrases=_all_languages(table.words),
                models=tuple(table.models),
                spoken=table.spoken,
            )
            for table in file.intents
        ),
        fillers=_all_languages(file.fillers),
        stops=_all_languages(file.stops),
        spellings=tuple(file.spellings.items()),
        inputs={kind.value: _all_languages(known) for kind, known in file.inputs.items()},
    )


def _all_languages(words: Mapping[str, Iterable[str]]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(word for language_words in words.values() for word in language_words))


def _check_models(where: str, model_ids: Iterable[str], models: Mapping[str, Model]) -> None:
    for model_id in model_ids:
        if model_id not in models:
            raise InvalidCatalog(f"{where}: there is no model {model_id!r}")
