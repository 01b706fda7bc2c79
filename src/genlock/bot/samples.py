"""Samples: what a model makes and how a voice sounds, from the operator's own results or from files of the overlay."""

from collections.abc import Iterator

from genlock.bot.bundle import BotBundle
from genlock.bot.order.results import kind_of_part
from genlock.bot.screen_context import text_of
from genlock.bot.screen_files import ScreenFile, by_path
from genlock.bot.storefront.storefront import Storefront
from genlock.domain.catalog import Model
from genlock.domain.delivery import Part
from genlock.domain.field import FieldType
from genlock.domain.job import Job
from genlock.ports import Database

#: kv entries of a bot: Telegram's file ids are valid for one bot only
_MODEL, _VOICE = "sample:model:", "sample:voice:"
#: kinds of results that a card can show
_SHOWN = (FieldType.IMAGE, FieldType.VIDEO, FieldType.AUDIO)


class Samples:
    def __init__(self, *, bundle: BotBundle, store: Database, storefront: Storefront) -> None:
        self._bundle = bundle
        self._store = store
        self._storefront = storefront

    async def of_model(self, model: Model) -> ScreenFile | None:
        """Return the sample of a model: the operator's result, else the file of the overlay."""
        marked = await self._store.kv_get(f"{_MODEL}{model.id}", self._bundle.id)
        if marked is not None:
            return ScreenFile(reference=marked.value)
        path = self._storefront.catalog.samples.models.get(model.id)
        return by_path(path, title=model.title) if path else None

    async def of_voice(self, voice: str, title: str) -> ScreenFile | None:
        """Return the sample of a voice: the operator's result, else the file of the overlay."""
        marked = await self._store.kv_get(f"{_VOICE}{voice}", self._bundle.id)
        if marked is not None:
            return ScreenFile(reference=marked.value)
        path = self._storefront.catalog.samples.voices.get(voice)
        return by_path(path, title=title) if path else None

    async def voices(self) -> frozenset[str]:
        """Return the voices that have a sample."""
        marked = await self._store.kv_list(_VOICE, self._bundle.id)
        return frozenset((*(row.key.removeprefix(_VOICE) for row in marked), *self._storefront.catalog.samples.voices))

    def usable(self, job: Job, part: Part) -> bool:
        """Whether a result can be a sample: a file that the channel has and a card can show."""
        model = self._storefront.catalog.models.get(job.model)
        return model is not None and part.file is not None and kind_of_part(part, model) in _SHOWN

    async def mark(self, job: Job, part: Part) -> None:
        """Make a result the sample of its model and, if it is speech, of its voice. Idempotent."""
        assert part.file is not None
        for key in self._keys(job):
            await self._store.kv_put(key, part.file, self._bundle.id)

    async def unmark(self, job: Job) -> None:
        """Remove the sample of the model and of the voice that a result was made with. Idempotent."""
        for key in self._keys(job):
            await self._store.kv_delete(key, self._bundle.id)

    async def is_marked(self, job: Job, part: Part) -> bool:
        marked = await self._store.kv_get(next(self._keys(job)), self._bundle.id)
        return marked is not None and marked.value == part.file

    def _keys(self, job: Job) -> Iterator[str]:
        model = self._storefront.catalog.get(job.model)
        voices = [text_of(job, field.name) for field in model.fields if field.traits]
        yield from (f"{_VOICE}{voice}" for voice in voices if voice)
        yield f"{_MODEL}{model.id}"
