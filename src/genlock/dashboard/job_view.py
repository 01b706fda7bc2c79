"""What the page of a job shows besides its time line and its money: input, results, user."""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

from genlock.dashboard.job_links import API
from genlock.domain.catalog import Catalog, Model
from genlock.domain.delivery import Part
from genlock.domain.errors import AccountNotFound, SubmitRefused
from genlock.domain.field import FILES
from genlock.domain.job import Job
from genlock.domain.profile import Profile
from genlock.domain.result import PartKind
from genlock.domain.stored_file import StoredFile
from genlock.domain.task import TaskOrder
from genlock.i18n.catalog_texts import field_name, model_title
from genlock.i18n.translator import Translator
from genlock.ports import Database, ProviderBundle

SECRET_SHOWN = "***"  # noqa: S105 - what is shown in its place
_USERNAME = re.compile(r"[A-Za-z0-9_]{4,32}")


@dataclass(frozen=True, kw_only=True, slots=True)
class InputField:
    label: str
    name: str
    #: each value as text
    values: tuple[str, ...]
    is_file: bool = False


def input_fields(job: Job, model: Model | None, t: Translator) -> list[InputField]:
    """Return the input as the user gave it: in the order of the model's fields, with their names."""
    given = _read(job.input)
    known = {field.name: field for field in model.fields} if model else {}
    names = [name for name in known if name in given] + [name for name in given if name not in known]
    found = []
    for name in names:
        field = known.get(name)
        found.append(
            InputField(
                label=field_name(field, t) if field else name,
                name=name,
                values=tuple(_texts(given[name])),
                is_file=field is not None and field.type in FILES,
            )
        )
    return found


def _read(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except ValueError:
        return {"input": text}
    return found if isinstance(found, dict) else {}


def _texts(value: Any) -> list[str]:
    if isinstance(value, list):
        return [text for item in value for text in _texts(item)]
    return [value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)]


@dataclass(frozen=True, kw_only=True, slots=True)
class SentRequest:
    """What the provider gets for a job."""

    url: str
    body: str


def sent_request(
    order: TaskOrder, bundle: ProviderBundle | None, public_url: str | None, mask: Callable[[str], str]
) -> SentRequest | None:
    """Return the call that creates the job's task; None if it is not known. The callback's secret is not shown."""
    job = order.job
    if bundle is None or bundle.create_request is None or job.erased:
        return None
    callback = f"{public_url}/callbacks/{job.provider}/{job.id}.{SECRET_SHOWN}" if public_url else None
    try:
        url, body = bundle.create_request(replace(order, callback_url=callback))
    except SubmitRefused:
        return None
    return SentRequest(url=mask(url), body=mask(json.dumps(body, ensure_ascii=False, indent=2)))


@dataclass(frozen=True, kw_only=True, slots=True)
class ResultPart:
    """One part of a result, with its number as users count."""

    number: int
    part: Part

    @property
    def is_text(self) -> bool:
        return self.part.kind is PartKind.TEXT

    @property
    def is_file(self) -> bool:
        return self.part.kind is PartKind.FILE


def result_parts(job: Job) -> list[ResultPart]:
    """Return the parts of the result; our own messages in place of one are left out."""
    if not job.has_result:
        return []
    numbered = enumerate(job.parts, 1)
    return [ResultPart(number=number, part=part) for number, part in numbered if part.kind is not PartKind.MESSAGE]


def stored_copy(job: Job, part: Part) -> StoredFile | None:
    """Return our own copy of a result; only those of API clients are copied to the media store."""
    return StoredFile.parse(part.file) if job.channel == API and part.file else None


@dataclass(frozen=True, kw_only=True, slots=True)
class JobUser:
    account_id: int
    external_id: str
    name: str
    username: str
    banned: bool
    #: where a Telegram client opens the chat with the user; empty if there is none
    chat_link: str


async def job_user(store: Database, job: Job) -> JobUser:
    account = await store.account(job.account_id)
    profile: Profile | None
    try:
        profile = await store.profile(job.account_id)
    except AccountNotFound:  # it was not ordered in a chat
        profile = None
    username = profile.username if profile else ""
    return JobUser(
        account_id=job.account_id,
        external_id=account.external_id,
        name=profile.name if profile else "",
        username=username,
        banned=profile is not None and profile.banned_at is not None,
        chat_link=_chat_link(account.channel, account.external_id, username),
    )


def _chat_link(channel: str, external_id: str, username: str) -> str:
    if channel != "telegram":
        return ""
    if _USERNAME.fullmatch(username):
        return f"https://t.me/{username}"
    return f"tg://user?id={external_id}" if external_id.isascii() and external_id.isdigit() else ""


def job_title(job: Job, catalog: Catalog, t: Translator) -> str:
    model = catalog.models.get(job.model)
    return model_title(model.title, t) if model else job.model


def provider_credit(providers: Mapping[str, ProviderBundle], catalog: Catalog, name: str) -> Decimal | None:
    """Return the US dollars per credit of a provider, if known."""
    bundle = providers.get(name)
    return bundle.credit_usd if bundle else catalog.provider_credit_usd.get(name)
