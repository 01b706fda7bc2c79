"""Packages that declare plug-ins, put where Python finds installed packages."""

import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

SECRET = "the-secret-key-of-acme"
PLUGIN = {"acme": "acme_pack:plugin"}
#: what the provider declares if it brings models
CATALOG = "catalog=Path(__file__).parent / 'acme_models', settings=Settings, make=make"
#: a provider that works; its name and the rest of its module are filled in
PROVIDER = """
from decimal import Decimal
from pathlib import Path
from pydantic import BaseModel, Field, SecretStr
import genlock.plugin as genlock

class Settings(BaseModel):
    key: SecretStr = Field(description="the key of the account")
    seconds: float = Field(default=1.5, gt=0, description="how long a task takes")

class Adapter(genlock.Provider):
    name = "{name}"
    async def create(self, order):
        return genlock.Handle(task_id="1")
    async def status(self, handle, order):
        raise genlock.ProviderError("away")
    def read_callback(self, body):
        raise ValueError("none")
    async def close(self):
        pass

def make(settings, context):
    adapter = Adapter()
    return genlock.ProviderBundle(
        provider=adapter, rate_limits={{}}, credit_usd=context.credit_usd, close=adapter.close)

plugin = genlock.ProviderPlugin(port=1, settings=Settings, make=make)
"""


def provider_source(name: str, old: str = "", new: str = "") -> str:
    """Return the module of a provider, with one thing changed."""
    source = PROVIDER.format(name=name)
    assert old in source
    return source.replace(old, new, 1) if old else source


class Packages:
    """A folder of installed packages, first on the path."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        self._modules: list[str] = []
        folder.mkdir(exist_ok=True)
        monkeypatch.syspath_prepend(folder)

    def add(
        self,
        package: str,
        source: str,
        *,
        providers: Mapping[str, str] | None = None,
        channels: Mapping[str, str] | None = None,
        entry_points: str | None = None,
    ) -> Path:
        """Install a package of one module; returns the folder of its metadata."""
        module = package.replace("-", "_")
        self.folder.joinpath(f"{module}.py").write_text(source)
        self._modules.append(module)
        metadata = self.folder / f"{module}-1.0.dist-info"
        metadata.mkdir()
        metadata.joinpath("METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
        text = _section("genlock.providers", providers or {}) + _section("genlock.channels", channels or {})
        metadata.joinpath("entry_points.txt").write_text(text if entry_points is None else entry_points)
        return metadata

    def unload(self) -> None:
        for module in self._modules:
            sys.modules.pop(module, None)


def _section(group: str, entries: Mapping[str, str]) -> str:
    lines = "".join(f"{name} = {place}\n" for name, place in entries.items())
    return f"[{group}]\n{lines}\n" if lines else ""
