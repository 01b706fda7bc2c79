"""Where users' files are stored, and when they are uploaded again."""

from collections.abc import AsyncIterable, AsyncIterator

import pytest

from genlock.app.plugins import find_plugins
from genlock.app.providers import file_storage, make_bundles
from genlock.domain.errors import ProviderError, Refusal
from genlock.engine.file_storage import FileStorage, ProviderStorage, SourceFailed
from tests.packaged import CATALOG

HOUR = 3600.0


async def storage() -> FileStorage:
    plugins = find_plugins()
    bundles = make_bundles(plugins, CATALOG)
    try:
        return file_storage(bundles, plugins)
    finally:
        for bundle in bundles.values():
            await bundle.close()


async def test_a_file_is_uploaded_again_before_its_provider_deletes_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Replicate keeps files for a day, Kie.ai for three."""
    monkeypatch.setenv("GENLOCK_REPLICATE_TOKEN", "token")
    day = await storage()
    monkeypatch.setenv("GENLOCK_KIE_API_KEY", "key")
    three_days = await storage()
    assert [day.is_old(hours * HOUR) for hours in (15, 17)] == [False, True]
    assert [three_days.is_old(hours * HOUR) for hours in (17, 47, 49)] == [False, False, True]


async def chunks(content: bytes = b"picture") -> AsyncIterator[bytes]:
    yield content


class Storage:
    """A provider's storage that records what it is sent, and refuses it while it is down."""

    def __init__(self, name: str, *, down: Exception | None = None) -> None:
        self.name, self.down = name, down
        self.stored: list[bytes] = []

    async def upload(self, content: AsyncIterable[bytes], name: str, folder: str) -> str:
        body = b"".join([chunk async for chunk in content])
        if self.down is not None:
            raise self.down
        self.stored.append(body)
        return f"https://{self.name}/{folder}/{name}"


async def test_a_file_goes_to_the_next_storage_while_the_first_is_down() -> None:
    """Storages whose files all models can read come first, those that failed lately last."""
    private, down, up = Storage("private"), Storage("down", down=ProviderError("status 503")), Storage("up")
    time = [0.0]
    storage = FileStorage(
        [
            ProviderStorage(provider="private", upload=private.upload, keep_seconds=60.0, is_public=False),
            ProviderStorage(provider="down", upload=down.upload),
            ProviderStorage(provider="up", upload=up.upload, keep_seconds=600.0),
        ],
        now=lambda: time[0],
    )
    first = await storage.store(chunks, "a.png")
    down.down = None
    second = await storage.store(chunks, "b.png")
    time[0] = 61.0
    third = await storage.store(chunks, "c.png")
    up.down = down.down = RuntimeError("a plug-in's bug")
    fourth = await storage.store(chunks, "d.png")
    private.down = ProviderError("full")

    assert (first.provider, first.url, first.key) == ("up", "https://up/genlock/a.png", first.url)
    assert first.left_seconds == 600.0
    assert [second.provider, third.provider, fourth.provider] == ["up", "down", "private"]
    assert up.stored == [b"picture"] * 2
    with pytest.raises(ProviderError, match=r"full|a plug-in's bug"):
        await storage.store(chunks, "e.png")


async def test_a_file_that_cannot_be_read_is_not_the_fault_of_a_storage() -> None:
    storages = [Storage("one"), Storage("two")]
    storage = FileStorage([ProviderStorage(provider=target.name, upload=target.upload) for target in storages])

    async def broken() -> AsyncIterator[bytes]:
        yield b"half"
        raise ProviderError("Telegram does not give the file")

    with pytest.raises(SourceFailed, match="Telegram does not give the file"):
        await storage.store(broken, "a.png")
    assert (await storage.store(chunks, "a.png")).provider == "one", "the first storage is not avoided for it"
    assert [target.stored for target in storages] == [[b"picture"], []]


async def test_without_a_provider_that_stores_files_the_keys_to_set_are_named() -> None:
    with pytest.raises(Refusal, match=r"No configured provider stores files.*set GENLOCK_KIE_API_KEY \(Kie.ai's"):
        await storage()
