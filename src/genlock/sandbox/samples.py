"""Paint samples for the sandbox: a picture for the popular models of each category, and a melody for each voice."""

import json
from pathlib import Path

from genlock.domain.catalog import Catalog, Model, Output
from genlock.sandbox.kie.media import make_audio, make_image

#: models of each category that get a sample, the cheapest first
MODELS_A_CATEGORY = 4
#: different melodies; voices share them
MELODIES = 3
_PAINTED = (Output.IMAGE, Output.VIDEO)
_VALUES = {"aspect_ratio": "4:3"}


def write_samples(folder: Path, catalog: Catalog) -> str:
    """Write the missing files into a folder, and return the tables that name them in an overlay beside it."""
    folder.mkdir(exist_ok=True)
    models = {model.id: f"model-{number}.png" for number, model in enumerate(_popular(catalog))}
    for model_id, name in models.items():
        if not (folder / name).exists():
            (folder / name).write_bytes(make_image(catalog.get(model_id).title, _VALUES, 0))
    voices = {voice: f"voice-{number % MELODIES}.mp3" for number, voice in enumerate(_voices(catalog))}
    for number, name in enumerate(dict.fromkeys(voices.values())):
        if not (folder / name).exists():
            (folder / name).write_bytes(make_audio(number))
    return _table("models", models, folder) + _table("voices", voices, folder)


def _popular(catalog: Catalog) -> list[Model]:
    found: dict[str, Model] = {}
    for category in catalog.categories():
        painted = [model for model in catalog.offered(category) if model.outputs[0] in _PAINTED]
        cheapest = sorted(painted, key=lambda model: (not model.featured, model.credits_from()))
        found |= {model.id: model for model in cheapest[:MODELS_A_CATEGORY]}
    return list(found.values())


def _voices(catalog: Catalog) -> list[str]:
    return list(dict.fromkeys(voice for model in catalog.offered() for field in model.fields for voice in field.traits))


def _table(name: str, files: dict[str, str], folder: Path) -> str:
    rows = "".join(f"{json.dumps(key)} = {json.dumps(f'{folder.name}/{file}')}\n" for key, file in files.items())
    return f"[samples.{name}]\n{rows}"
