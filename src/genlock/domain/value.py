"""Values that a life makes by the dozen."""

from dataclasses import dataclass
from typing import TypeVar, dataclass_transform

T = TypeVar("T")


@dataclass_transform(frozen_default=True, kw_only_default=True)
def value(cls: type[T]) -> type[T]:
    """A frozen, keyword-only dataclass. The type checker keeps it frozen: Python would make it three times as dear."""
    return dataclass(kw_only=True, slots=True, unsafe_hash=True)(cls)
