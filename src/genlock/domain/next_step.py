"""Next steps: what a user can do with a result or a file, and which models do it. The data is in `genlock.catalog`."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from genlock.domain.field import FieldType


class PromptSource(StrEnum):
    """Where the prompt of a next step comes from."""

    ASK = "ask"  #: the user writes it
    ORDER = "order"  #: the prompt of the order that made the result; if it had none, our text for the step
    OURS = "ours"  #: our text for the step


@dataclass(frozen=True, kw_only=True, slots=True)
class NextStep:
    #: what it is done with: an image, a video, a sound file or a text
    kind: FieldType
    name: str
    #: whose models are listed under "another model"
    category: str
    #: None: its models take no prompt, or need none
    prompt: PromptSource | None = None
    #: a text that answers such a message, or comes with such a file, asks for this step
    reply: bool = False
    #: the categories of models whose results have this step; empty: all
    of: tuple[str, ...] = ()
    #: values of other fields, for models that have them
    values: Mapping[str, object] = field(default_factory=dict)
    #: the field that takes the result, by model id, the best model first
    models: Mapping[str, str] = field(default_factory=dict)

    @property
    def key(self) -> str:
        """Identifies the step in drafts and in the keys of texts."""
        return f"{self.kind.value}_{self.name}"
