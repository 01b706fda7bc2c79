"""HTTP control of the Telegram simulator: what its users do and see. The chat page is built on it.

Everything is JSON. `person` is the id of a user, `chat` that of a chat; without `chat` the user acts in the private
chat with the bot. The paths say `people` and `person` for users because test harnesses depend on them.
A view of a message is {"chat", "message" (as in the Bot API), "shown" (its kind), "keyboard", "paid", "reactions"}.

GET  /sim/state                      bot, commands, people, chats, faults, limiter, last (number of the newest event)
GET  /sim/chats/CHAT?person=PERSON   what that user sees there: {"messages": [view, …], "last": N}
GET  /sim/events?after=N             server-sent events from N on (or from the header Last-Event-ID); see below
GET  /sim/calls?after=N              the journal after call N
GET  /sim/files/FILE_ID              a file with its type; range requests work
POST /sim/people                     {"name", "last_name"?, "language"?, "stars"?, "started"?} → the user
POST /sim/people/PERSON              {"language"?, "stars"?, "blocked"?, "deactivated"?} → the user
POST /sim/people/PERSON/say          {"text", "chat"?, "thread"?, "reply_to"?} → view
POST /sim/people/PERSON/send         multipart: file (several make an album), kind (photo, …; one for all, or one for
                                     each file), caption, chat, reply_to → views
POST /sim/people/PERSON/voice        multipart: file (a recording in any format; without it, a sample voice), chat,
                                     reply_to → view
POST /sim/people/PERSON/sticker      {"sticker" (its emoji), "chat"?, "reply_to"?} → view; GET /sim/stickers lists them
POST /sim/people/PERSON/edit         {"message", "text", "chat"?} → view
POST /sim/people/PERSON/forward      {"messages", "chat"?, "to"?} → views
POST /sim/people/PERSON/press        {"message", "button" (its data or text), "chat"?} → {"press"}, {"url"} or {"said"}
POST /sim/people/PERSON/pay          {"message", "chat"?} or {"link"} → {"ok", "reason", "charge_id"}, within 10 s
POST /sim/people/PERSON/react        {"message", "emoji" (or null), "chat"?}
POST /sim/people/PERSON/delete       {"message", "for_both", "chat"?}
POST /sim/people/PERSON/clear        {"chat"?, "for_both"?}: the whole history
POST /sim/groups                     {"title", "members", "kind"? (group, supergroup or channel), "username"? (a public
                                     name)} → the chat
POST /sim/groups/CHAT                {"add"?, "remove"?, "bot"? (member, administrator, left, kicked), "forbid"?,
                                     "topic"? (a name), "migrate"? (true)} → the chat, or the new one
POST /sim/faults                   {"fault", "method"?, "chat"?, "times"?, "probability"?, "seconds"?, "text"?} → switch
DELETE /sim/faults[/ID]              one, or all
POST /sim/settings                   {"limiter"?, "upload_seconds"?, "edits_pass_block"?}
POST /sim/log                        an object, or a list of them: log lines to show beside the chat

Events, each with {"number", "at"}: message and edit (a view), delete {chat, message_id}, hide {person, chat,
message_id}, notification {person, chat, message, text}, action {chat, action}, draft {chat, draft, text}, reaction,
answer {person, press, text, alert}, payment {person, ok, reason | charge, amount, stars}, stars {person, stars},
person, block, chat, profile, update (sent to the bot), call (made by the bot, see Call), fault (all switches),
log {line}. The first event, without name and number, is {world}, the id of this simulator run. If it changed, or if
`reset` arrives, events were missed and the client must load the state again.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from aiohttp import web

from genlock.sandbox.requests import host_error, page_origin_error
from genlock.sandbox.telegram.api_call import ApiError
from genlock.sandbox.telegram.chats import Chat, User
from genlock.sandbox.telegram.faults import Fault
from genlock.sandbox.telegram.groups import Group
from genlock.sandbox.telegram.simulated_user import NotInChat, SimulatedUser

if TYPE_CHECKING:
    from genlock.sandbox.telegram.simulator import TelegramSimulator

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
GUARDED = ("/sim/", "/bot", "/file/")  #: all paths but the page itself, which other sites may link to
QUIET_SECONDS = 15
CALLS_MAX = 500


def add_control(app: web.Application, telegram: "TelegramSimulator") -> None:
    control = Control(telegram)
    app.middlewares.append(control.check_request)
    for path, handler in control.gets.items():
        app.router.add_get(path, handler)
    for path, handler in control.posts.items():
        app.router.add_post(path, handler)
    app.router.add_delete("/sim/faults", control.clear_faults)
    app.router.add_delete("/sim/faults/{id:[0-9]+}", control.clear_faults)


class Control:
    def __init__(self, telegram: "TelegramSimulator") -> None:
        self._telegram = telegram
        self._state = telegram.state
        self.gets: dict[str, Handler] = {
            "/sim/state": self.state,
            "/sim/chats/{chat:-?[0-9]+}": self.chat,
            "/sim/events": self.events,
            "/sim/calls": self.calls,
            "/sim/files/{id}": self.file,
        }
        user_path = "/sim/people/{person:[0-9]+}"
        self.posts: dict[str, Handler] = {
            "/sim/people": self.add_user,
            user_path: self.change_user,
            f"{user_path}/say": self.say,
            f"{user_path}/send": self.send,
            f"{user_path}/press": self.press,
            f"{user_path}/pay": self.pay,
            f"{user_path}/inline": self.inline,
            f"{user_path}/share": self.share,
            f"{user_path}/react": self.react,
            f"{user_path}/delete": self.delete,
            f"{user_path}/clear": self.clear,
            "/sim/groups": self.add_group,
            "/sim/groups/{chat:-[0-9]+}": self.change_group,
            "/sim/faults": self.add_fault,
            "/sim/settings": self.change_settings,
            "/sim/log": self.log,
        }

    @web.middleware
    async def check_request(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        if why := self._origin_error(request):
            return web.json_response({"error": why}, status=403)
        if not request.path.startswith("/sim/"):
            return await handler(request)
        try:
            return await handler(request)
        except (KeyError, IndexError) as error:
            return web.json_response({"error": f"not found: {error}"}, status=404)
        except (ValueError, TypeError, AttributeError, NotInChat, ApiError) as error:
            return web.json_response({"error": str(error)}, status=400)

    def _origin_error(self, request: web.Request) -> str | None:
        if why := host_error(request, self._telegram.host):
            return why
        return page_origin_error(request) if request.path.startswith(GUARDED) else None

    # reading

    async def state(self, _: web.Request) -> web.Response:
        state, telegram = self._state, self._telegram
        return web.json_response(
            {
                "bot": state.bot,
                "commands": state.profile["commands"],
                "people": [self.user_json(user) for user in state.users.values()],
                "chats": [self.chat_json(chat) for chat in state.chats.values()],
                "faults": telegram.faults.as_json(),
                "kinds_of_faults": list(Fault),
                "limiter": {"on": telegram.limiter.on, "refused": telegram.limiter.refused},
                "upload_seconds": state.upload_seconds,
                "edits_pass_block": state.edits_pass_block,
                "webhook": state.updates.webhook_info(),
                "last": state.events.last,
            }
        )

    def user_json(self, user: User) -> dict[str, Any]:
        more = {name: getattr(user, name) for name in ("stars", "started", "blocked", "deactivated", "operator")}
        return user.as_json() | more

    def chat_json(self, chat: Chat) -> dict[str, Any]:
        topics = {number: topic.name for number, topic in chat.topics.items()}
        more = {"members": sorted(chat.members), "bot_status": chat.bot_status, "migrated_to": chat.migrated_to}
        return self._state.show_chat(chat) | more | {"topics": topics}

    async def chat(self, request: web.Request) -> web.Response:
        chat = int(request.match_info["chat"])
        user = SimulatedUser(self._state, self._state.users[int(request.query["person"])])
        views = [self._state.view(message) for message in user.messages_in(chat)]
        return web.json_response({"messages": views, "last": self._state.events.last})

    async def calls(self, request: web.Request) -> web.Response:
        after = int(request.query.get("after", 0))
        calls = [call.as_json() for call in self._telegram.journal[after:][-CALLS_MAX:]]
        return web.json_response(calls)

    async def file(self, request: web.Request) -> web.StreamResponse:
        stored = self._state.files.known[request.match_info["id"]]
        headers = {"Content-Type": stored.type or "application/octet-stream", "X-Content-Type-Options": "nosniff"}
        headers["Content-Security-Policy"] = "sandbox"
        return web.FileResponse(self._state.files.folder / stored.path, headers=headers)

    async def events(self, request: web.Request) -> web.StreamResponse:
        events = self._state.events
        number = int(request.headers.get("Last-Event-ID") or request.query.get("after") or events.last)
        response = web.StreamResponse(
            headers={"Content-Type": "text/event-stream", "Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        )
        await response.prepare(request)
        hello = json.dumps({"world": events.id})
        await response.write(f"retry: 1000\ndata: {hello}\n\n".encode())
        if number > events.last or number < events.first - 1:
            await response.write(f"id: {events.last}\nevent: reset\ndata: {{}}\n\n".encode())
            number = events.last
        try:
            while True:
                for event in events.since(number):
                    number = event.number
                    data = json.dumps(event.as_json(), ensure_ascii=False, default=str)
                    await response.write(f"id: {number}\nevent: {event.kind}\ndata: {data}\n\n".encode())
                if not await events.wait_after(number, QUIET_SECONDS):
                    await response.write(b": still here\n\n")
        except ConnectionResetError:
            return response

    # users

    async def add_user(self, request: web.Request) -> web.Response:
        body = await read_body(request)
        user = self._state.add_user(
            str(body["name"]),
            language=body.get("language", "en"),
            stars=int(body.get("stars", 10_000)),
            started=bool(body.get("started", True)),
            last_name=str(body.get("last_name", "")),
        )
        return web.json_response(self.user_json(user))

    async def change_user(self, request: web.Request) -> web.Response:
        body, user = await read_body(request), self._user_of(request)
        if "language" in body:
            await user.set_language(body["language"])
        if "stars" in body:
            user.user.stars = int(body["stars"])
            self._state.events.add("stars", person=user.id, stars=user.user.stars)
        if "blocked" in body:
            await (user.block() if body["blocked"] else user.unblock())
        if body.get("deactivated"):
            await user.deactivate()
        return web.json_response(self.user_json(user.user))

    async def say(self, request: web.Request) -> web.Response:
        body, user = await read_body(request), self._user_of(request)
        message = await user.say(
            str(body["text"]), chat=body.get("chat"), thread=body.get("thread"), reply_to=body.get("reply_to")
        )
        return web.json_response(self._state.view(message))

    async def send(self, request: web.Request) -> web.Response:
        form, user = await request.post(), self._user_of(request)
        files = [file for file in form.getall("file") if isinstance(file, web.FileField)]
        kinds = [str(kind) for kind in form.getall("kind", [])] or ["document"]
        kinds += kinds[-1:] * (len(files) - len(kinds))
        chat, reply_to = str(form.get("chat", "")), str(form.get("reply_to", ""))
        sent = await user.send_all(
            [
                (kind, await asyncio.to_thread(file.file.read), file.filename)
                for kind, file in zip(kinds, files, strict=False)
            ],
            caption=str(form.get("caption", "")),
            chat=int(chat) if chat else None,
            reply_to=int(reply_to) if reply_to else None,
        )
        return web.json_response([self._state.view(message) for message in sent])

    async def press(self, request: web.Request) -> web.Response:
        body, user = await read_body(request), self._user_of(request)
        pressed = await user.press(int(body["message"]), str(body["button"]), chat=body.get("chat"))
        if not isinstance(pressed, str):
            return web.json_response({"press": pressed.id})
        return web.json_response({"url" if "://" in pressed else "said": pressed})

    async def pay(self, request: web.Request) -> web.Response:
        body, user = await read_body(request), self._user_of(request)
        payment = await user.pay(body.get("link") or int(body["message"]), chat=body.get("chat"))
        return web.json_response({"ok": payment.ok, "reason": payment.reason, "charge_id": payment.charge_id})

    async def inline(self, request: web.Request) -> web.Response:
        body, user = await read_body(request), self._user_of(request)
        query = await user.inline(str(body["text"]), chat=body.get("chat"))
        return web.json_response(query.as_json())

    async def share(self, request: web.Request) -> web.Response:
        body, user = await read_body(request), self._user_of(request)
        query = self._state.inline_queries[str(body["query"])]
        message = await user.share(query, str(body["result"]), chat=body.get("chat"))
        return web.json_response(self._state.view(message))

    async def react(self, request: web.Request) -> web.Response:
        body, user = await read_body(request), self._user_of(request)
        await user.react(int(body["message"]), body["emoji"], chat=body.get("chat"))
        return web.json_response({})

    async def delete(self, request: web.Request) -> web.Response:
        body, user = await read_body(request), self._user_of(request)
        await user.delete(int(body["message"]), for_both=bool(body["for_both"]), chat=body.get("chat"))
        return web.json_response({})

    async def clear(self, request: web.Request) -> web.Response:
        body, user = await read_body(request), self._user_of(request)
        await user.clear(chat=body.get("chat"), for_both=bool(body.get("for_both")))
        return web.json_response({})

    def _user_of(self, request: web.Request) -> SimulatedUser:
        return SimulatedUser(self._state, self._state.users[int(request.match_info["person"])])

    # groups

    async def add_group(self, request: web.Request) -> web.Response:
        body = await read_body(request)
        members = [SimulatedUser(self._state, self._state.users[int(number)]) for number in body["members"]]
        kind, username = str(body.get("kind", "group")), str(body.get("username", ""))
        group = self._telegram.group(str(body["title"]), members, kind=kind, username=username)
        status, group.chat.bot_status = group.chat.bot_status, "left"
        await group.set_bot(status, by=members[0] if members else None)  # as Telegram tells a bot of a new group
        return web.json_response(self.chat_json(group.chat))

    async def change_group(self, request: web.Request) -> web.Response:
        body = await read_body(request)
        group = Group(self._state, self._state.chats[int(request.match_info["chat"])])
        for number in body.get("add", ()):
            await group.add(SimulatedUser(self._state, self._state.users[int(number)]))
        for number in body.get("remove", ()):
            await group.remove(SimulatedUser(self._state, self._state.users[int(number)]))
        if "bot" in body:
            await group.set_bot(str(body["bot"]))
        if "forbid" in body:
            await group.forbid(*body["forbid"])
        if "topic" in body:
            await group.topic(str(body["topic"]))
        if body.get("migrate"):
            group = await group.migrate()
        return web.json_response(self.chat_json(group.chat))

    # faults, settings and log lines

    async def add_fault(self, request: web.Request) -> web.Response:
        body = await read_body(request)
        switch = self._telegram.faults.switch(Fault(body.pop("fault")), **body)
        self._state.events.add("fault", faults=self._telegram.faults.as_json())
        return web.json_response(switch.as_json())

    async def clear_faults(self, request: web.Request) -> web.Response:
        if "id" in request.match_info:
            self._telegram.faults.off(int(request.match_info["id"]))
        else:
            self._telegram.faults.clear()
        self._state.events.add("fault", faults=self._telegram.faults.as_json())
        return web.json_response(self._telegram.faults.as_json())

    async def change_settings(self, request: web.Request) -> web.Response:
        body = await read_body(request)
        self._telegram.limiter.on = bool(body.get("limiter", self._telegram.limiter.on))
        self._state.upload_seconds = float(body.get("upload_seconds", self._state.upload_seconds))
        self._state.edits_pass_block = bool(body.get("edits_pass_block", self._state.edits_pass_block))
        return await self.state(request)

    async def log(self, request: web.Request) -> web.Response:
        body = await request.json()
        for line in body if isinstance(body, list) else [body]:
            self._state.events.add("log", line=line)
        return web.json_response({})


async def read_body(request: web.Request) -> dict[str, Any]:
    """Read a JSON object. Other content types are refused, so that no form of another site is accepted."""
    if request.content_type != "application/json":
        raise ValueError("the content type must be application/json")
    body = await request.json()
    if not isinstance(body, dict):
        raise TypeError("the body must be a JSON object")
    return body
