"""Saves the running tasks of the Kie.ai simulator to a file and lets them go on, so that orders survive a restart."""

import json
from pathlib import Path
from typing import Any

from genlock.sandbox.kie.endpoints import ENDPOINTS
from genlock.sandbox.kie.faults import Fault
from genlock.sandbox.kie.simulator import KieSimulator, endpoint_of
from genlock.sandbox.kie.task import Task

FILE = "kie.json"
SAVED = ("id", "values", "callback_url", "price", "seconds", "real_seconds", "created", "states")


def save_tasks(kie: KieSimulator, folder: Path) -> None:
    """Write the tasks that are running."""
    tasks = [_plain(task) for task in kie.service.tasks.values() if task.ended is None]
    temporary = folder / f"{FILE}.new"
    temporary.write_text(json.dumps(tasks, ensure_ascii=False))
    temporary.replace(folder / FILE)


def _plain(task: Task) -> dict[str, Any]:
    return {name: getattr(task, name) for name in SAVED} | {"model": task.model.id, "faults": sorted(task.faults)}


def resume_tasks(kie: KieSimulator, folder: Path) -> None:
    """Let the saved tasks go on. One whose time is over ends at once, as if it had ended meanwhile.

    The file is removed, so that no task goes on again after the next start if this process is killed.
    """
    file = folder / FILE
    if not file.exists():
        return
    tasks = json.loads(file.read_text())
    file.unlink()
    for saved in tasks:
        _resume(kie, saved)


def _resume(kie: KieSimulator, saved: dict[str, Any]) -> None:
    model = kie.service.catalog.models.get(saved["model"])
    if model is None:  # the catalog is a newer one
        return
    faults = {Fault(name) for name in saved["faults"]}
    task = Task(**saved | {"model": model, "faults": faults, "states": tuple(saved["states"])})
    if endpoint := endpoint_of(task, ENDPOINTS):
        kie.service.add_results(task)
        kie.service.tasks[task.id] = task
        kie.service.start(task, endpoint)
