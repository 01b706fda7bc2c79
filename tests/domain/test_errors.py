"""Errors speak for themselves and carry their facts as data."""

import inspect

import pytest

from genlock.domain import errors
from genlock.domain.errors import (
    AccountNotFound,
    ChannelBusy,
    ChannelError,
    GenlockError,
    IdempotencyKeyReused,
    InsufficientBalance,
    ProviderBusy,
    ProviderError,
    RecipientUnreachable,
    Refusal,
    StoreError,
    StoreInUse,
    StoreUnavailable,
    SubmitRefused,
)

ALL = [kind for _, kind in inspect.getmembers(errors, inspect.isclass) if issubclass(kind, GenlockError)]
PLAIN = [kind for kind in ALL if kind.__init__ is GenlockError.__init__]


@pytest.mark.parametrize("kind", PLAIN)
def test_the_docstring_is_the_message_unless_there_is_a_better_one(kind: type[GenlockError]) -> None:
    assert kind.__doc__
    assert str(kind()) == kind.__doc__
    assert str(kind("the disk is full")) == "the disk is full"


def test_every_error_is_in_the_tree_at_the_top_of_the_module() -> None:
    tree = inspect.getdoc(errors) or ""
    assert [kind.__name__ for kind in ALL if kind.__name__ not in tree] == []


@pytest.mark.parametrize(
    ("kind", "family"),
    [
        *((kind, Refusal) for kind in (InsufficientBalance, IdempotencyKeyReused, AccountNotFound)),
        *((kind, StoreError) for kind in (StoreUnavailable, StoreInUse)),
        *((kind, ProviderError) for kind in (SubmitRefused, ProviderBusy)),
        *((kind, ChannelError) for kind in (ChannelBusy, RecipientUnreachable)),
    ],
)
def test_errors_are_grouped_by_what_the_caller_can_do(kind: type[GenlockError], family: type[GenlockError]) -> None:
    assert issubclass(kind, family)


def test_error_details_are_attributes() -> None:
    poor = InsufficientBalance(price=100, available=7)
    assert (poor.price, poor.available, str(poor)) == (100, 7, InsufficientBalance.__doc__)
    refused = SubmitRefused("nsfw", "not that")
    assert (refused.code, refused.text, str(refused)) == ("nsfw", "not that", "nsfw: not that")
    assert str(SubmitRefused("nsfw")) == "nsfw"
    assert (ProviderBusy(3.5).after, str(ProviderBusy(3.5))) == (3.5, ProviderBusy.__doc__)
    assert (ChannelBusy(2, "429").after, str(ChannelBusy(2, "429"))) == (2, "429")
    assert (RecipientUnreachable("blocked").reason, str(RecipientUnreachable("blocked"))) == ("blocked", "blocked")
