"""Simulator of Telegram on this machine: the Bot API with its rules and error texts, simulated users, and faults.

async with running_telegram(token="42:sandbox") as telegram:
    # settings: GENLOCK_TELEGRAM_API_URL=telegram.url, GENLOCK_TELEGRAM_TOKEN=telegram.token
    ann = telegram.add_user("Ann", language="ru")            # id: ann.id; Ann has opened the chat before (started=True)
    await ann.start("payload"); await ann.say("a cat"); await ann.send_photo(png, caption="this one")
    message = await ann.sees("Which model?")               # waits for a text or a condition, new or edited
    press = await ann.press(message, "menu")               # by callback data or by the button's text
    press.answered, press.text, press.alert                # what the bot answered
    ann.messages, ann.last, ann.notifications              # as Ann sees them now
    telegram.files.read(message.file_id)                   # the bytes that are shown
    await ann.delete(message, for_both=False); await ann.clear(); await ann.block(); await ann.unblock()
    payment = await ann.pay(invoice_message)               # or pay(link); .ok, .reason, .charge_id; ann.user.stars
    await ann.edit(message, "another text"); await ann.forward([message], to=friends.id)
    await ann.send_sticker("😀"); await ann.send_recording(None)   # None: a sample voice
    await ann.deactivate(); await ann.set_language("en")
    friends = telegram.group("Friends", [ann, bob])        # await ann.say("/gen cat", chat=friends.id)
    news = telegram.group("News", [ann], kind="channel", username="news")   # chat_id "@news"
    new = await friends.migrate(); await friends.set_bot("kicked", by=ann); await friends.forbid("photo")
    telegram.faults.once(Fault.DROP_AFTER, method="editMessageMedia", chat=ann.id)
    telegram.faults.switch(Fault.TOO_MANY, probability=0.1, seconds=5); telegram.faults.clear()
    telegram.faults.once(Fault.REFUSED, method="sendPhoto", text="Bad Request: PHOTO_EXT_INVALID")
    telegram.journal                                       # every Bot API call, see Call
    telegram.calls("sendPhoto")                            # those of one method
    telegram.limiter.on = True                             # 1/s per chat, 20/min per group, 30/s in all, and the queue
                                                           # of equal uploads above 100 kB; off by default
    telegram.upload_seconds = 0.5                          # additional duration of media edits, for races
    telegram.state.edits_pass_block = False                # a user's block also refuses edits; by default they pass

It also runs as a program (`python -m genlock.sandbox.telegram`), and all of this can be done over HTTP on the same
port: see control.py. It serves one bot, identified by its token. Like a Bot API server run with `--local` it accepts
plain HTTP webhooks on this machine, but it has the size limits of api.telegram.org.

Not simulated: rich messages, games, business accounts, stories, gifts that are sent, subscriptions. Such
calls get `Not Found: method not found`. Of what the product does not use, only the bot's side is simulated: users do
not vote in polls, buy paid media or join by a link.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from time import time
from typing import Any

from aiohttp import web

from genlock.sandbox import processes
from genlock.sandbox.serving import listening
from genlock.sandbox.telegram.api_call import ApiError, CallArguments, error_response, ok_response, read_call
from genlock.sandbox.telegram.chat_page import add_page
from genlock.sandbox.telegram.composing import add_composing
from genlock.sandbox.telegram.control import add_control
from genlock.sandbox.telegram.events import PATIENCE_SECONDS
from genlock.sandbox.telegram.faults import AFTER, BEFORE, DOWNLOAD, Fault, Faults, Switch
from genlock.sandbox.telegram.files import Files
from genlock.sandbox.telegram.groups import Group
from genlock.sandbox.telegram.journal import Call
from genlock.sandbox.telegram.limiter import Limiter, Limits, too_many
from genlock.sandbox.telegram.media import Media
from genlock.sandbox.telegram.messages import Method
from genlock.sandbox.telegram.methods import METHODS, NAMES, DescribedResult
from genlock.sandbox.telegram.persistence import load, save, save_periodically
from genlock.sandbox.telegram.provider_switches import SimulatedProvider, add_provider_switches
from genlock.sandbox.telegram.simulated_user import SimulatedUser
from genlock.sandbox.telegram.state import TelegramState
from genlock.sandbox.try_page.routes import TryAccess, add_try_page

TOKEN = "42:sandbox"  # noqa: S105 - not a secret
BODY_BYTES_MAX = 53_000_000
PAGE = "<html>\r\n<head><title>502 Bad Gateway</title></head>\r\n<body>502 Bad Gateway</body>\r\n</html>"
REFUSED_CODES = {"Unauthorized": 401, "Forbidden": 403, "Not Found": 404, "Conflict": 409, "Misdirected Request": 421}
RESTART = ApiError(500, "Internal Server Error: restart")


@dataclass(frozen=True, kw_only=True)
class DashboardLogin:
    url: str
    token: str


class TelegramSimulator:
    """The Bot API for one bot, the state behind it, and fault control."""

    def __init__(self, state: TelegramState, *, faults: Faults, limiter: Limiter) -> None:
        self.state = state
        self.faults = faults
        self.limiter = limiter
        state.updates.note_action = limiter.note_action
        self.journal: list[Call] = []
        self.url = ""
        self.host = ""
        #: the Kie.ai simulator whose faults the page controls
        self.kie_url: str | None = None
        #: the simulated providers that the page can take down, by name
        self.providers: Mapping[str, SimulatedProvider] = {}
        #: where the chat page finds the operator's dashboard
        self.dashboard: DashboardLogin | None = None
        #: which service the page at /try uses, with which key
        self.try_access: TryAccess | None = None
        state.updates.run_call = self._run_webhook_reply
        self.app = web.Application(client_max_size=BODY_BYTES_MAX)
        self.app.router.add_route("*", "/bot{token:[^/]+}/{method:.*}", self._call)
        add_control(self.app, self)
        add_composing(self.app, self)
        add_page(self.app, self, sorted(NAMES))
        add_provider_switches(self.app, self)
        add_try_page(self.app, lambda: self.try_access)
        self.app.router.add_get("/file/bot{token:[^/]+}/{path:.+}", self._file)

    @property
    def token(self) -> str:
        return self.state.token

    @property
    def page_url(self) -> str:
        return f"{self.url}/"

    @property
    def files(self) -> Files:
        return self.state.files

    @property
    def upload_seconds(self) -> float:
        return self.state.upload_seconds

    @upload_seconds.setter
    def upload_seconds(self, seconds: float) -> None:
        self.state.upload_seconds = seconds

    def add_user(
        self,
        name: str,
        *,
        language: str | None = "en",
        stars: int = 10_000,
        started: bool = True,
        operator: bool = False,
    ) -> SimulatedUser:
        user = self.state.add_user(name, language=language, stars=stars, started=started, operator=operator)
        return SimulatedUser(self.state, user)

    def group(self, title: str, members: list[SimulatedUser], *, kind: str = "group", username: str = "") -> Group:
        ids = {user.id for user in members}
        return Group(self.state, self.state.add_group(title, ids, kind=kind, username=username))

    def calls(self, method: str, *, chat: int | None = None) -> list[Call]:
        return [call for call in self.journal if call.method == method and chat in {None, call.chat}]

    async def until(self, holds: Callable[[], object], seconds: float = PATIENCE_SECONDS) -> None:
        """Wait until something holds that the simulator knows of. Raises TimeoutError."""
        if not await self.state.events.wait_until(lambda: bool(holds()), seconds):
            raise TimeoutError

    # Bot API calls

    async def _call(self, request: web.Request) -> web.StreamResponse:
        try:
            self._check_token(request)
            name, method = _method(request.match_info["method"])
            arguments = await read_call(request)
        except ApiError as refused:
            return error_response(refused)
        call = self._record_call(name, arguments)
        drawn = self._draw(call, BEFORE)
        dropped = Fault.DROP_BEFORE in drawn
        response = None if dropped else await self._apply_faults_before(call, drawn)
        if response is None and not dropped:
            arguments.inside_seconds = drawn[Fault.DELAY_INSIDE].seconds if Fault.DELAY_INSIDE in drawn else 0.0
            response = await self._apply_faults_after(call, await self._execute(call, method, arguments))
        if response is None:
            assert request.transport is not None
            request.transport.abort()
        call.answered = response is not None
        call.seconds = time() - call.at
        if call.method != "getUpdates":
            self.state.events.add("call", call=call.as_json())
        return response or web.Response()

    def _check_token(self, request: web.Request) -> None:
        token = request.match_info["token"]
        if not token.partition(":")[0].isdigit() or ":" not in token:
            raise ApiError(404, "Not Found")
        if token != self.token:
            raise ApiError(401, "Unauthorized")

    def _record_call(self, name: str, arguments: CallArguments) -> Call:
        call = Call(
            number=len(self.journal) + 1,
            at=time(),
            method=name,
            arguments=arguments.as_json(),
            chat=arguments.number("chat_id") or None,
            uploaded=arguments.uploaded_bytes,
        )
        self.journal.append(call)
        self.state.events.wake()
        return call

    def _draw(self, call: Call, kinds: Collection[Fault]) -> dict[Fault, Switch]:
        drawn = self.faults.draw(call.method, call.chat, kinds)
        call.faults += [str(fault) for fault in drawn]
        if drawn:
            self.state.events.add("fault", faults=self.faults.as_json())
        return drawn

    async def _apply_faults_before(self, call: Call, drawn: dict[Fault, Switch]) -> web.Response | None:
        """Apply faults that happen before execution; return an answer if the call must not be executed."""
        if Fault.DELAY in drawn:
            await asyncio.sleep(drawn[Fault.DELAY].seconds)
        refused: ApiError | None = None
        if Fault.TOO_MANY in drawn:
            seconds = drawn[Fault.TOO_MANY].seconds
            self.limiter.block_for(call.chat, seconds)
            refused = too_many(seconds)
        if Fault.REFUSED in drawn:
            text = drawn[Fault.REFUSED].text
            refused = ApiError(REFUSED_CODES.get(text.partition(":")[0], 400), text)
        if Fault.SERVER_ERROR in drawn:
            refused = RESTART
        if refused is not None:
            call.error = refused.description
            return error_response(refused)
        if Fault.BAD_GATEWAY in drawn:
            call.error = "502"
            return web.Response(status=502, text=PAGE, content_type="text/html")
        return None

    async def _execute(self, call: Call, method: Method, arguments: CallArguments) -> web.Response:
        try:
            arguments.check_unicode()
            media = arguments.json("media", "media") if call.method == "sendMediaGroup" else None
            cost = len(media) if isinstance(media, list) and media else 1
            await asyncio.sleep(self.limiter.upload_wait(arguments.uploaded_bytes))
            self.limiter.admit(call.method, call.chat, cost=cost)
            if call.method == "setWebhook" and arguments.has("url"):
                self.limiter.admit_webhook()
            result = await method(self.state, arguments)
        except ApiError as refused:
            call.error = refused.description
            return error_response(refused)
        call.executed = True
        description = result.description if isinstance(result, DescribedResult) else None
        call.answer = True if description else result
        return ok_response(call.answer, description)

    async def _apply_faults_after(self, call: Call, response: web.Response) -> web.Response | None:
        """Apply faults to the answer of an executed call; None: drop the connection."""
        drawn = self._draw(call, AFTER) if call.executed else {}
        if Fault.DELAY_AFTER in drawn:
            await asyncio.sleep(drawn[Fault.DELAY_AFTER].seconds)
        return None if Fault.DROP_AFTER in drawn else _falsified(call, response, drawn)

    async def _run_webhook_reply(self, name: str, values: dict[str, Any]) -> None:
        """Execute a Bot API call from a webhook response."""
        try:
            name, method = _method(name)
        except ApiError:
            return
        arguments = CallArguments(values)
        call = self._record_call(name, arguments)
        await self._execute(call, method, arguments)
        self.state.events.add("call", call=call.as_json())

    async def _file(self, request: web.Request) -> web.StreamResponse:
        stored = self.files.at(request.match_info["path"])
        if request.match_info["token"] != self.token or stored is None:
            return error_response(ApiError(404, "Not Found"))
        drawn = self.faults.draw(DOWNLOAD, None, {Fault.DELAY})
        if Fault.DELAY in drawn:
            self.state.events.add("fault", faults=self.faults.as_json())
            await asyncio.sleep(drawn[Fault.DELAY].seconds)
        return web.FileResponse(self.files.folder / stored.path)


def _falsified(call: Call, response: web.Response, drawn: Collection[Fault]) -> web.Response:
    """Return the answer of an executed call, or what a fault makes of it."""
    assert isinstance(response.body, bytes)
    half = response.body[: len(response.body) // 2]
    answers: dict[Fault, Callable[[], web.Response]] = {
        Fault.SERVER_ERROR_AFTER: lambda: error_response(RESTART),
        Fault.BAD_GATEWAY_AFTER: lambda: web.Response(status=502, text=PAGE, content_type="text/html"),
        Fault.UNDECODABLE: lambda: web.Response(body=half, content_type="application/json"),
        Fault.WRONG_SHAPE: lambda: ok_response({"unknown": "object"}),
        Fault.UNNUMBERED: lambda: ok_response({**call.answer, "message_id": 0}),
    }
    return next((answer() for fault, answer in answers.items() if fault in drawn), response)


def _method(name: str) -> tuple[str, Method]:
    found = METHODS.get(name.removeprefix("test/").lower())
    if found is None:
        raise ApiError(404, "Not Found: method not found" if name else "Not Found")
    return found


@asynccontextmanager
async def running_telegram(  # noqa: PLR0913 - settings of a whole service, all with defaults
    *,
    token: str = TOKEN,
    speed: float = 1.0,
    limiter: bool = False,
    limits: Limits | None = None,
    seed: int | None = 1,
    clock: Callable[[], float] = time,
    host: str = "127.0.0.1",
    port: int = 0,
    folder: Path | None = None,
    files: Path | None = None,
    kie_url: str | None = None,
) -> AsyncIterator[TelegramSimulator]:
    """Run the simulator until the block ends. Time-outs and retries are `speed` times as fast; rate limits are not.

    With `folder`, users, chats and files are kept for the next run. Pass seed=None then, so that ids never repeat.
    Otherwise files are written to `files`, which the caller removes, or to a temporary folder.
    """
    rng = Random(seed)
    with _made_folder(folder or files) as home:
        media = Media(files=Files(folder=home / "files"))
        state = TelegramState(token=token, media=media, rng=rng, speed=speed, clock=clock)
        telegram = TelegramSimulator(
            state, faults=Faults(rng), limiter=Limiter(limits=limits or Limits(), clock=clock, on=limiter)
        )
        async with listening(telegram.app, host, port) as listener:
            telegram.host, telegram.kie_url, telegram.url = host, kie_url, listener.url
            try:
                async with _persisted(state, folder):
                    yield telegram
            finally:
                await state.updates.close()


@contextmanager
def _made_folder(folder: Path | None) -> Iterator[Path]:
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
        yield folder
        return
    with TemporaryDirectory(prefix="telegram-", dir=processes.scratch) as temporary:
        yield Path(temporary)


@asynccontextmanager
async def _persisted(state: TelegramState, folder: Path | None) -> AsyncIterator[None]:
    if folder is None:
        yield
        return
    await load(state, folder)
    saving = asyncio.get_running_loop().create_task(save_periodically(state, folder))
    try:
        yield
    finally:
        saving.cancel()
        await save(state, folder)
