"""A provider that repeats the prompt, and a channel whose users order by putting files into a folder."""

import asyncio
from pathlib import Path

from pydantic import BaseModel, Field, SecretStr

import genlock.plugin as genlock
from genlock.plugin import Handle, Job, Part, PartKind, Placed, Report, TaskOrder


class EchoSettings(BaseModel):
    key: SecretStr = Field(description="the key of the echo account")


class Echo(genlock.Provider):
    """Has no server: the handle holds all that `status` needs, so that every instance can answer."""

    name = "echo"

    async def create(self, order: TaskOrder) -> Handle:
        prompt = order.input().get("prompt")
        if not isinstance(prompt, str) or not prompt.strip():
            raise genlock.SubmitRefused("bad_input", "there is no prompt")
        return Handle(task_id=f"echo-{order.job.id}-{order.job.lease_token}", details=prompt[:2000])

    async def status(self, handle: Handle, order: TaskOrder) -> Report:
        text = genlock.Piece(kind=PartKind.TEXT, value=handle.details)
        return Report(outcome=genlock.Outcome.SUCCESS, task_id=handle.task_id, pieces=(text,), cost=0)

    def read_callback(self, body: bytes) -> Report:
        raise ValueError("this provider sends no callbacks")

    async def close(self) -> None: ...


def make_provider(settings: EchoSettings, context: genlock.ProviderContext) -> genlock.ProviderBundle:
    echo, limits = Echo(), dict.fromkeys(("create", "status"), genlock.RateLimit(interval=0.1))
    return genlock.ProviderBundle(provider=echo, rate_limits=limits, credit_usd=context.credit_usd, close=echo.close)


class FolderSettings(BaseModel):
    path: Path = Field(description="the folder for orders, which are files `*.json`, and for results")


class FolderOrder(BaseModel):
    user: str
    model: str
    input: dict[str, object]


class Folder(genlock.Channel):
    """Shows a part as a file. To write the same file again changes nothing, so every call may be repeated."""

    name = "folder"

    def __init__(self, path: Path, texts: genlock.MessageTexts) -> None:
        self._path, self._texts = path, texts

    async def create_placeholder(self, job: Job, index: int) -> str:
        return f"{job.address}-{index}.txt"

    async def put(self, job: Job, index: int, part: Part) -> Placed:
        text = self._texts.failed(job, "en").text if part.kind is PartKind.MESSAGE else part.value
        name = f"{job.address}-{index}.txt"
        self._path.joinpath(name).write_text(text, encoding="utf-8")
        return Placed(message=name)

    async def send(self, job: Job, index: int, part: Part) -> Placed:
        return await self.put(job, index, part)

    async def notify(self, job: Job) -> None: ...

    async def progress(self, job: Job, fraction: float, until: float) -> None: ...

    async def receive(self, orders: genlock.Orders) -> None:
        """Order what each file asks for. After a crash the same file is the same order, by its name."""
        while True:
            for path in sorted(self._path.glob("*.json")):
                try:
                    wanted = FolderOrder.model_validate_json(path.read_bytes())
                    account, name = await orders.account(wanted.user), path.stem
                    await orders.order(account, key=name, address=name, model=wanted.model, values=wanted.input)
                except (genlock.OrderRefused, ValueError) as refused:
                    path.with_suffix(".txt").write_text(str(refused), encoding="utf-8")
                path.rename(path.with_suffix(".done"))
            await asyncio.sleep(0.2)

    async def close(self) -> None: ...


def make_channel(settings: FolderSettings, context: genlock.ChannelContext) -> genlock.ChannelBundle:
    folder = Folder(settings.path, context.texts)
    return genlock.ChannelBundle(channel=folder, close=folder.close, receive=folder.receive)


CATALOG = Path(__file__).parent / "catalog"
provider = genlock.ProviderPlugin(port=1, settings=EchoSettings, make=make_provider, catalog=CATALOG)
channel = genlock.ChannelPlugin(port=1, settings=FolderSettings, make=make_channel)
