"""The simulators' own books, read from the person's side: what a chat shows, and what the provider was asked for."""

import re
from collections import defaultdict
from dataclasses import dataclass

from genlock.sandbox.kie.simulator import KieSimulator
from genlock.sandbox.kie.task import Task
from genlock.sandbox.telegram.probe import make_sizes
from genlock.sandbox.telegram.simulated_user import SimulatedUser
from genlock.sandbox.telegram.simulator import TelegramSimulator
from genlock.sandbox.telegram.state import MEDIA, Message

#: how the bot begins when an order brought nothing, in any language
FAILURE_MARK = "😔"
DONE_MARK = "✅"
_JOB = re.compile(r"(?:again|repeat|change|cancel):([0-9]+)")
_LINK = re.compile(r"https?://\S+")


@dataclass(kw_only=True, eq=False)
class Order:
    """Something a person has asked for. No other order has the same words."""

    user: SimulatedUser
    prompt: str
    #: the message it was asked with
    message: int
    asked_at: float
    #: when the end was seen in the chat
    ended_at: float | None = None


class Records:
    def __init__(self, telegram: TelegramSimulator, kie: KieSimulator) -> None:
        self._telegram = telegram
        self._kie = kie
        self._tasks: dict[str, Task] = {}
        self._urls: dict[str, str] = {}

    # the provider's book

    def tasks(self) -> dict[str, list[Task]]:
        """Tasks by what they were asked for."""
        found = defaultdict(list)
        for task in self._kie.service.tasks.values():
            found[str(task.values.get("prompt", ""))].append(task)
        return found

    # the chat's book

    def bot_messages(self, user: SimulatedUser) -> list[Message]:
        """What the bot's side of a chat looks like now."""
        bot = self._telegram.state.bot_id
        return [message for message in user.messages if message.sender == bot]

    def task_shown_by(self, message: Message) -> Task | None:
        """The task whose result a message shows."""
        if message.kind in MEDIA:
            links = [self._fetched(message), *(button.get("url") for button in message.buttons)]
        else:
            links = _LINK.findall(message.text)
        return next((task for link in links if link and (task := self._task(link))), None)

    def _fetched(self, message: Message) -> str | None:
        """Where the simulated Telegram itself got the file from."""
        fetched = self._telegram.state.media.fetched
        if len(fetched) != len(self._urls):
            self._urls = {stored if isinstance(stored, str) else stored.id: url for (_, url), stored in fetched.items()}
        return self._urls.get(message.file_id or "")

    def _task(self, url: str) -> Task | None:
        if url not in self._tasks:
            self._tasks |= {url: task for task in self._kie.service.tasks.values() for url in task.results}
        return self._tasks.get(url)

    def is_genuine(self, message: Message, task: Task) -> bool:
        """Whether what is shown is what the task made, byte by byte, whatever stands beside it."""
        if message.file_id is None:
            return True  # a link: it leads where it leads
        shown = self._telegram.files.read(message.file_id)
        made = [file.content for url in task.results if (file := self._kie.service.files.find(url)) and file.content]
        return any(shown in {content, make_sizes(content)[-1][2]} for content in made)

    def results(self, order: Order) -> list[Message]:
        """The messages in its person's chat that show what was ordered."""
        return [
            message
            for message in self.bot_messages(order.user)
            if (task := self.task_shown_by(message)) and task.values.get("prompt") == order.prompt
        ]

    def has_ended(self, order: Order) -> bool:
        """Whether the person knows, who waits for one order at a time."""
        newer = [message for message in self.bot_messages(order.user) if message.id > order.message]
        return any(message.kind in MEDIA or message.text.startswith(FAILURE_MARK) for message in newer) or bool(
            self.results(order)
        )


def job_of(message: Message) -> int | None:
    """The job that a message's buttons are about."""
    for button in message.buttons:
        if found := _JOB.fullmatch(button.get("callback_data") or ""):
            return int(found[1])
    return None


def is_failure_text(message: Message) -> bool:
    return message.kind == "text" and message.text.startswith(FAILURE_MARK)


def is_notice(message: Message) -> bool:
    return message.kind == "text" and message.text.startswith(DONE_MARK) and job_of(message) is not None
