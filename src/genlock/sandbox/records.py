"""What the simulators recorded, for checks that do not trust the product's own database.

The Telegram simulator knows what each chat shows, the Kie.ai simulator which tasks were created.
"""

import re
from collections import defaultdict
from dataclasses import dataclass

from genlock.sandbox.kie.simulator import KieSimulator
from genlock.sandbox.kie.task import Task
from genlock.sandbox.telegram.chats import MEDIA, Message
from genlock.sandbox.telegram.probe import make_sizes
from genlock.sandbox.telegram.simulated_user import SimulatedUser
from genlock.sandbox.telegram.simulator import TelegramSimulator

#: first character of the bot's message about a failed order, in every language
FAILURE_MARK = "😔"
DONE_MARK = "✅"
_JOB = re.compile(r"(?:again|repeat|change|cancel):([0-9]+)(?::below)?")
_LINK = re.compile(r"https?://\S+")


@dataclass(kw_only=True, eq=False)
class Order:
    """An order that a simulated user placed. Its prompt is unique within a run."""

    user: SimulatedUser
    prompt: str
    #: id of the user's message
    message: int
    asked_at: float
    #: the order whose result this one begins with
    previous: "Order | None" = None
    #: when the chat showed the result or the failure
    ended_at: float | None = None


class Records:
    def __init__(self, telegram: TelegramSimulator, kie: KieSimulator) -> None:
        self._telegram = telegram
        self._kie = kie
        self._tasks: dict[str, Task] = {}
        self._urls: dict[str, str] = {}

    # Kie.ai

    def tasks(self) -> dict[str, list[Task]]:
        """Return tasks by prompt."""
        found = defaultdict(list)
        for task in self._kie.service.tasks.values():
            found[str(task.values.get("prompt", ""))].append(task)
        return found

    # chats

    def bot_messages(self, user: SimulatedUser) -> list[Message]:
        """Return messages of the bot that the user sees now."""
        bot = self._telegram.state.bot_id
        return [message for message in user.messages if message.sender == bot]

    def task_shown_by(self, message: Message) -> Task | None:
        """Return the task whose result the message shows, if any."""
        if message.kind in MEDIA:
            links = [self._fetched(message), *(button.get("url") for button in message.buttons)]
        else:
            links = _LINK.findall(message.text)
        return next((task for link in links if link and (task := self._task(link))), None)

    def _fetched(self, message: Message) -> str | None:
        """Return the URL from which the Telegram simulator fetched the message's file, if it did."""
        fetched = self._telegram.state.media.fetched
        if len(fetched) != len(self._urls):
            self._urls = {stored if isinstance(stored, str) else stored.id: url for (_, url), stored in fetched.items()}
        return self._urls.get(message.file_id or "")

    def _task(self, url: str) -> Task | None:
        if url not in self._tasks:
            self._tasks |= {url: task for task in self._kie.service.tasks.values() for url in task.results}
        return self._tasks.get(url)

    def is_genuine(self, message: Message, task: Task) -> bool:
        """Whether the file that the message shows has the bytes that the task made."""
        if message.file_id is None:
            return True  # a link: there is no file to compare
        return self._telegram.files.read(message.file_id) in self._copies([task])

    def is_result_of(self, order: Order, urls: list[str]) -> bool:
        """Whether each file is a result of the order, by its address or by its bytes."""
        tasks = self.tasks()[order.prompt]
        made = [url for task in tasks for url in task.results]
        others = [self._kie.service.files.find(url) for url in urls if url not in made]
        copies = self._copies(tasks) if others else set()
        # An order whose submit was lost never had its file downloaded: the content is made now.
        return bool(urls) and all(file is not None and file.read() in copies for file in others)

    def _copies(self, tasks: list[Task]) -> set[bytes]:
        """Return the bytes of what the tasks made, and of the photos that Telegram makes of them."""
        urls = [url for task in tasks for url in task.results]
        made = [file.content for url in urls if (file := self._kie.service.files.find(url)) and file.content]
        return {*made, *(make_sizes(content)[-1][2] for content in made)}

    def results(self, order: Order) -> list[Message]:
        """Return messages in the user's chat that show the result of this order."""
        return [
            message
            for message in self.bot_messages(order.user)
            if (task := self.task_shown_by(message)) and task.values.get("prompt") == order.prompt
        ]

    def has_ended(self, order: Order) -> bool:
        """Whether the chat shows a result or a failure. The user has one open order at a time."""
        newer = [message for message in self.bot_messages(order.user) if message.id > order.message]
        return any(message.kind in MEDIA or message.text.startswith(FAILURE_MARK) for message in newer) or bool(
            self.results(order)
        )


def job_of(message: Message) -> int | None:
    """Return the job id in the message's buttons, if any."""
    for button in message.buttons:
        if found := _JOB.fullmatch(button.get("callback_data") or ""):
            return int(found[1])
    return None


def is_failure_text(message: Message) -> bool:
    return message.kind == "text" and message.text.startswith(FAILURE_MARK)


def is_notice(message: Message) -> bool:
    return message.kind == "text" and message.text.startswith(DONE_MARK) and job_of(message) is not None
