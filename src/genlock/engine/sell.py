"""Sell a generation: turn an order (account, model, input values) into an accepted job, for any front end."""

import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from genlock.domain.catalog import ASSUMED_SECONDS, NOTHING, Model, Status
from genlock.domain.catalog import price as list_price
from genlock.domain.current_catalog import CurrentCatalog
from genlock.domain.errors import (
    IdempotencyKeyReused,
    InsufficientBalance,
    InvalidInput,
    SpendLimitReached,
    TooManyOpenJobs,
)
from genlock.domain.job import Job, NewJob
from genlock.domain.upload import field_urls, file_urls
from genlock.engine.engine import Engine
from genlock.ports import Database, OrderState


@dataclass(frozen=True, kw_only=True, slots=True)
class SaleRules:
    """Prices and limits of the operator; limits count per account."""

    markup: float = 2.0
    credit_usd: float = 0.01
    free_per_day: int = 0
    running_max: int = 5
    #: None: no limit by time
    per_minute: int | None = 10
    per_hour: int | None = 100

    @property
    def limited_by_time(self) -> bool:
        """Whether the orders of an account per minute and per hour are limited."""
        return self.per_minute is not None and self.per_hour is not None


class NotSoldReason(StrEnum):
    UNKNOWN_MODEL = "unknown_model"  #: no such model, or the operator does not offer it
    PROVIDER_NOT_CONFIGURED = "provider_not_configured"
    INVALID_INPUT = "invalid_input"  #: `error` says which value and why
    DEARER = "dearer"  #: the price is above the one the user agreed to; `price` is the new one
    INSUFFICIENT_BALANCE = "insufficient_balance"  #: `price` and `available` say how much is missing
    TOO_MANY_RUNNING = "too_many_running"  #: `count` jobs of the account are running
    TOO_MANY_PER_MINUTE = "too_many_per_minute"  #: allowed again in `wait_seconds`
    TOO_MANY_PER_HOUR = "too_many_per_hour"  #: allowed again in `wait_seconds`
    SPEND_LIMIT = "spend_limit"  #: the API key may spend only `available` more today
    FREE_RUN_GONE = "free_run_gone"  #: another order took the last free run meanwhile; a new quote has a price


@dataclass(frozen=True, kw_only=True, slots=True)
class NotSold:
    """Why there is no job. Nothing was charged."""

    reason: NotSoldReason
    price: int = 0
    available: int = 0
    count: int = 0
    wait_seconds: float = 0.0
    error: InvalidInput | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Quote:
    """The price of one order now, in thousandths of a credit."""

    price: int
    #: whether one of the account's free runs pays for it
    free: bool = False
    #: the length in seconds that the price assumes for a file whose length is unknown
    assumed_seconds: float | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Order:
    account_id: int
    model: str
    values: Mapping[str, Any]
    #: idempotency key of the account: one key, one job
    key: str
    channel: str
    address: str
    bot: str = ""
    #: measured lengths of files in seconds, by file URL
    seconds: Mapping[str, float] = field(default_factory=dict)
    #: whether the operator pays, whatever the model costs
    sponsored: bool = False
    #: the price that the user was shown; None accepts any price
    agreed_price: int | None = None
    #: the channel's message that becomes the result
    placeholder: str | None = None
    #: "" for a new one
    correlation_id: str = ""
    #: the API key that the order is made with
    api_key_id: int | None = None


class Seller:
    """Quotes orders and turns them into jobs.

    `sell` may be repeated with the same key after a crash at any line: each write below is keyed by the order's key
    (the free run, the job with its hold) or is idempotent (the use of an upload).
    """

    def __init__(self, *, engine: Engine, store: Database, catalog: CurrentCatalog, rules: SaleRules) -> None:
        self._engine = engine
        self._store = store
        self._catalog = catalog
        self._rules = rules

    async def quote(
        self, account_id: int, model: str, values: Mapping[str, Any], seconds: Mapping[str, float], *, key: str = ""
    ) -> Quote | NotSold:
        """Price an order. A free run that the order `key` has already taken still counts as available."""
        found = self._find(model)
        return found if isinstance(found, NotSold) else await self._quote(account_id, found, values, seconds, key)

    async def _quote(
        self, account_id: int, model: Model, values: Mapping[str, Any], seconds: Mapping[str, float], key: str
    ) -> Quote | NotSold:
        free_left = 0
        if model.free:
            free_left = (await self._store.free_runs(account_id, self._rules.free_per_day, ignore_key=key)).left
        try:
            return make_quote(
                model,
                values,
                seconds,
                markup=self._rules.markup,
                credit_usd=self._rules.credit_usd,
                free_left=free_left,
            )
        except InvalidInput as error:
            return NotSold(reason=NotSoldReason.INVALID_INPUT, error=error)

    async def sell(
        self,
        order: Order,
        *,
        state: OrderState | None = None,
        before_accept: Callable[[], Awaitable[None]] | None = None,
    ) -> Job | NotSold:
        """Accept the order as a job with its hold, or say why not. The same key always gives the same job.

        `state` was read for this order a moment ago; without it, it is read now. `before_accept` is awaited after all
        checks have passed and before anything is written.
        """
        if state is None:
            with_activity = self._rules.limited_by_time
            state = await self._store.order_state(order.account_id, order.key, with_activity=with_activity)
        if state.job is not None:
            return state.job
        model = self._find(order.model)  # once: an operator's edit in between does not change this order
        if isinstance(model, NotSold):
            return model
        quote = await self._quote(order.account_id, model, order.values, order.seconds, order.key)
        if isinstance(quote, NotSold):
            return quote
        if order.sponsored:
            quote = Quote(price=0)
        if (refused := await self._refusal(order, quote, state)) is not None:
            return refused
        if before_accept is not None:
            await before_accept()
        return await self._accept(order, model, quote)

    def _find(self, model: str) -> Model | NotSold:
        found = self._catalog.get().models.get(model)
        if found is None or found.status is not Status.OFFERED:
            return NotSold(reason=NotSoldReason.UNKNOWN_MODEL)
        if not found.made_by(self._engine.ctx.providers):
            return NotSold(reason=NotSoldReason.PROVIDER_NOT_CONFIGURED)
        return found

    async def _refusal(self, order: Order, quote: Quote, state: OrderState) -> NotSold | None:
        if order.agreed_price is not None and quote.price > order.agreed_price:
            return NotSold(reason=NotSoldReason.DEARER, price=quote.price)
        if quote.price > state.available:
            return NotSold(reason=NotSoldReason.INSUFFICIENT_BALANCE, price=quote.price, available=state.available)
        return await self._over_limit(order.account_id, state)

    async def _over_limit(self, account_id: int, state: OrderState) -> NotSold | None:
        rules = self._rules
        if rules.per_minute is None or rules.per_hour is None:  # the commit checks it again, exactly
            is_full = state.open_api_jobs >= rules.running_max
            return NotSold(reason=NotSoldReason.TOO_MANY_RUNNING, count=state.open_api_jobs) if is_full else None
        recent = state.activity or await self._store.activity(account_id)
        if recent.running >= rules.running_max:
            return NotSold(reason=NotSoldReason.TOO_MANY_RUNNING, count=recent.running)
        if recent.minute >= rules.per_minute:
            return NotSold(reason=NotSoldReason.TOO_MANY_PER_MINUTE, wait_seconds=recent.minute_wait)
        if recent.hour >= rules.per_hour:
            return NotSold(reason=NotSoldReason.TOO_MANY_PER_HOUR, wait_seconds=recent.hour_wait)
        return None

    async def _accept(self, order: Order, model: Model, quote: Quote) -> Job | NotSold:
        if quote.free and not await self._store.take_free_run(order.account_id, order.key, self._rules.free_per_day):
            return NotSold(reason=NotSoldReason.FREE_RUN_GONE)
        for url in file_urls(model, model.validate(order.values)):
            await self._store.mark_upload_used(url)
        try:
            job = await self._engine.order(_new_job(order, model, quote, self._open_max(order)))
        except InsufficientBalance as short:  # another order spent the credits since the check above
            return NotSold(reason=NotSoldReason.INSUFFICIENT_BALANCE, price=short.price, available=short.available)
        except SpendLimitReached as over:
            left = max(0, over.limit - over.spent)
            return NotSold(reason=NotSoldReason.SPEND_LIMIT, price=over.price, available=left)
        except TooManyOpenJobs as full:  # others were accepted since the check above
            if quote.free:
                await self._store.return_free_run(order.account_id, order.key)
            return NotSold(reason=NotSoldReason.TOO_MANY_RUNNING, count=full.open_jobs)
        except IdempotencyKeyReused:
            # The same key was accepted since the check above, with another price or input.
            found = await self._store.job_by_request_key(order.account_id, order.key)
            if found is None:
                raise
            return found
        if quote.free and order.api_key_id is not None:  # a request with the same key may have returned the run
            await self._store.take_free_run(order.account_id, order.key, self._rules.free_per_day)
        return job

    def _open_max(self, order: Order) -> int | None:
        return self._rules.running_max if order.api_key_id is not None else None


def make_quote(
    model: Model,
    values: Mapping[str, Any],
    seconds: Mapping[str, float],
    *,
    markup: float,
    credit_usd: float,
    free_left: int,
) -> Quote:
    """Price one order; `seconds` are measured lengths of files by URL. Raises InvalidInput."""
    _check_internal(model, values)
    clean = model.validate(values)  # what the provider gets: several addresses in one text are several files
    lengths = file_seconds(model, clean, seconds)
    paid = replace(model, free=False) if model.free else model
    price = list_price(paid, clean, markup, credit_usd, lengths)
    if model.free and free_left > 0 and price > 0:
        return Quote(price=0, free=True, assumed_seconds=_assumed(model, clean, seconds))
    return Quote(price=price, assumed_seconds=_assumed(model, clean, seconds))


def _check_internal(model: Model, values: Mapping[str, Any]) -> None:
    """Refuse values of fields that users are never shown: such a field may switch off the provider's content check."""
    for input_field in model.fields:
        if input_field.internal and values.get(input_field.name) not in (*NOTHING, input_field.default):
            raise InvalidInput(input_field.name, f"is not an input of {model.title}", problem="combination")


def _assumed(model: Model, values: Mapping[str, Any], seconds: Mapping[str, float]) -> float | None:
    """Return the longest length that the price assumes because a file was not measured; None if it assumes none."""
    if model.own_price is not None:
        return None
    by_length = {row.seconds for row in (*model.prices, *model.extras) if row.seconds and row.matches(values)}
    lengths = file_seconds(model, values, seconds)
    guessed = [
        lengths[input_field.name]
        for input_field in model.fields
        if input_field.name in by_length and not all(url in seconds for url in field_urls(input_field, values))
    ]
    return max(guessed, default=None)


def file_seconds(model: Model, values: Mapping[str, Any], seconds: Mapping[str, float]) -> dict[str, float]:
    """Return the total length of each field's files; an unmeasured file counts as the longest length allowed.

    `values` are cleaned: a list of files is a list.
    """
    return {
        input_field.name: sum(seconds.get(url, input_field.max_seconds or ASSUMED_SECONDS) for url in urls)
        for input_field in model.fields
        if (urls := field_urls(input_field, values))
    }


def _new_job(order: Order, model: Model, quote: Quote, open_max: int | None) -> NewJob:
    return NewJob(
        account_id=order.account_id,
        request_key=order.key,
        provider=model.provider,
        channel=order.channel,
        bot=order.bot,
        address=order.address,
        model=model.id,
        input=json.dumps(model.validate(order.values), ensure_ascii=False),
        price=quote.price,
        deadline_seconds=model.deadline_seconds,
        placeholder=order.placeholder,
        correlation_id=order.correlation_id,
        api_key_id=order.api_key_id,
        open_max=open_max,
    )
