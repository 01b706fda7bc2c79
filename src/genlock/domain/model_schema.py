"""What a provider publishes about one of its models: the inputs that it takes, and the price of one unit."""

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal


@dataclass(frozen=True, kw_only=True, slots=True)
class InputSchema:
    """What a provider publishes about one input of a model."""

    required: bool = False
    #: the values that it takes, as JSON values; empty: any value of its type
    choices: tuple[object, ...] = ()
    #: the value of an order that does not have the input, as a JSON value; None: not published
    default: object = None


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelSchema:
    """What a provider publishes about one model."""

    #: by the provider's name of the input; None: the provider publishes no schema of this model
    inputs: Mapping[str, InputSchema] | None
    #: the provider says that the model will be taken down
    deprecated: bool = False
    #: US dollars for one unit; None: not published
    unit_price: Decimal | None = None
    #: what the price is for, in the provider's word, such as "image" or "seconds"
    unit: str = ""
