"""What runs tasks."""

from typing import Protocol

from genlock.domain.job import Job
from genlock.domain.result import Report


class Provider(Protocol):
    """Runs tasks. `create` raises SubmitRefused, ProviderBusy or SubmitUnknown; `status` raises ProviderBusy."""

    name: str

    async def create(self, job: Job, callback_url: str | None) -> str:
        """Start a task for the job and return its id."""

    async def status(self, task_id: str, job: Job) -> Report:
        """Ask what became of a task."""

    def read_callback(self, body: bytes) -> Report:
        """Understand a callback. Raises ValueError if there is nothing to understand."""
