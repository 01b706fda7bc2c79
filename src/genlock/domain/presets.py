"""Presets: styles, ideas for prompts, and models that improve a prompt. The data is in `genlock.catalog`."""

from collections.abc import Mapping
from dataclasses import dataclass, field

#: stands for the user's prompt in the instruction to the model that improves it
PROMPT_MARK = "{prompt}"
#: between a prompt and the text of a style
_JOINT = ". "


@dataclass(frozen=True, kw_only=True, slots=True)
class Style:
    """A look that is added to a prompt."""

    key: str
    #: by language
    name: Mapping[str, str]
    #: what is added to the prompt
    text: str
    #: the outputs it fits, such as "image"
    of: tuple[str, ...]
    #: path of the picture that shows it
    picture: str = ""

    def added_to(self, prompt: str) -> str:
        return f"{prompt.rstrip().rstrip('.')}{_JOINT}{self.text}"

    def taken_from(self, prompt: str) -> str | None:
        """Return the prompt without this style; None if it does not have it."""
        ending = f"{_JOINT}{self.text}"
        return prompt.removesuffix(ending) if prompt.endswith(ending) else None


@dataclass(frozen=True, kw_only=True, slots=True)
class Idea:
    """A prompt for a user who has none."""

    #: the categories of models that it is for
    of: tuple[str, ...]
    #: by language
    text: Mapping[str, str]


@dataclass(frozen=True, kw_only=True, slots=True)
class PromptImprover:
    """The ability of a model to rewrite prompts: which input takes them, and which models they are for."""

    field: str
    #: categories of the models whose prompts it improves; empty: all
    of: tuple[str, ...] = ()
    #: what the model gets, with the mark where the prompt stands
    instruction: str = PROMPT_MARK

    def request(self, prompt: str) -> str:
        """Return the text for the model."""
        return self.instruction.replace(PROMPT_MARK, prompt)

    def prompt_of(self, request: str) -> str:
        """Return the prompt in a text for the model; empty if the instruction was another one."""
        before, _, after = self.instruction.partition(PROMPT_MARK)
        if not request.startswith(before) or not request.endswith(after):
            return ""
        return request[len(before) : len(request) - len(after)]


@dataclass(frozen=True, kw_only=True, slots=True)
class SampleFiles:
    """Paths of the operator's sample files: by model id, by voice and by style."""

    models: Mapping[str, str] = field(default_factory=dict)
    voices: Mapping[str, str] = field(default_factory=dict)
    styles: Mapping[str, str] = field(default_factory=dict)
