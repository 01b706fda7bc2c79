"""Loads the presets: styles with their pictures, and ideas for prompts; and the sample files of the overlay."""

from collections.abc import Mapping
from pathlib import Path

from genlock.catalog.reader import check, parse
from genlock.catalog.schema import PresetsFile, SamplesTable
from genlock.domain.errors import InvalidCatalog
from genlock.domain.presets import Idea, SampleFiles, Style

PRESETS = "presets.toml"
#: the folder with the pictures of the styles
PICTURES = "styles"
#: a larger file is not sent with a screen that users wait for
SAMPLE_BYTES_MAX = 10 * 1024 * 1024
SUFFIXES = {"models": (".jpg", ".jpeg", ".png", ".webp"), "voices": (".mp3", ".m4a", ".ogg")}


def load_presets(path: Path, samples: SampleFiles) -> tuple[tuple[Style, ...], tuple[Idea, ...]]:
    """Load the presets of a folder of models; none if it has no such file. Raises InvalidCatalog."""
    if not path.exists():
        return (), ()
    file = check(PresetsFile, parse(path), path.name)
    for key in samples.styles:
        if key not in file.styles:
            raise InvalidCatalog(f"samples: styles: there is no style {key!r}; there are {', '.join(file.styles)}")
    styles = tuple(
        Style(
            key=key,
            name=table.texts(),
            text=table.text,
            of=tuple(output.value for output in table.of),
            picture=samples.styles.get(key) or str(path.parent / PICTURES / table.picture),
        )
        for key, table in file.styles.items()
    )
    ideas = tuple(Idea(of=tuple(category.value for category in table.of), text=table.texts()) for table in file.ideas)
    return styles, ideas


def load_samples(table: SamplesTable, overlay: Path, models: Mapping[str, object]) -> SampleFiles:
    """Return the sample files that an overlay names, relative to its own folder. Raises InvalidCatalog."""
    for model_id in table.models:
        if model_id not in models:
            raise InvalidCatalog(f"{overlay.name}: samples: models: there is no model {model_id!r}")
    found = {
        kind: {name: _sample(kind, name, file, overlay) for name, file in files.items()}
        for kind, files in (("models", table.models), ("voices", table.voices), ("styles", table.styles))
    }
    return SampleFiles(**found)


def _sample(kind: str, name: str, file: str, overlay: Path) -> str:
    path, where = overlay.parent / file, f"{overlay.name}: samples: {kind}: {name}"
    allowed = SUFFIXES.get(kind, SUFFIXES["models"])
    if path.suffix.lower() not in allowed:
        raise InvalidCatalog(f"{where}: {file!r} must end in one of {', '.join(allowed)}")
    if not path.is_file():
        raise InvalidCatalog(f"{where}: there is no file {str(path)!r}")
    if not 0 < path.stat().st_size <= SAMPLE_BYTES_MAX:
        raise InvalidCatalog(f"{where}: {file!r} must have 1 byte to {SAMPLE_BYTES_MAX // 1024 // 1024} MB")
    return str(path)
