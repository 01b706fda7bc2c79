"""Makes the media store that the settings name."""

from contextlib import AsyncExitStack
from pathlib import Path
from urllib.parse import unquote, urlsplit

from genlock.app.databases import SQLITE
from genlock.domain.errors import Refusal
from genlock.media.stores.folder import FolderMediaStore
from genlock.media.stores.s3 import Bucket, S3MediaStore
from genlock.ports import MediaStore
from genlock.settings import Settings

DEFAULT_FOLDER = "genlock-media"


def make_media_store(settings: Settings, closing: AsyncExitStack) -> MediaStore:
    """Return the media store. Raises Refusal if its address is wrong."""
    url = settings.media_url.get_secret_value() if settings.media_url else ""
    if not url.startswith("s3://"):
        return FolderMediaStore(media_folder(settings))
    try:
        store = S3MediaStore(Bucket.parse(url))
    except ValueError as error:
        raise Refusal(f"GENLOCK_MEDIA_URL {error}") from None
    closing.push_async_callback(store.close)
    return store


def media_folder(settings: Settings) -> Path:
    if settings.media_url is not None:
        return Path(unquote(urlsplit(settings.media_url.get_secret_value()).path))
    database = settings.database_url
    beside = Path(database.removeprefix(SQLITE)).parent if database.startswith(SQLITE) else Path()
    return beside / DEFAULT_FOLDER
