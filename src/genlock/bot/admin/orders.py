"""`/admin order`, `resend`, `retry`, `resubmit`, `cancel`, `refund`, `orders`, `attention`."""

from collections.abc import Awaitable, Callable, Mapping, Sequence

from genlock.bot.admin import questions, screens
from genlock.bot.admin.accounts import AccountCommands
from genlock.bot.admin.audit import AuditLog
from genlock.bot.admin.command import AdminCommand, Declined, Question, Run, argument, order_number
from genlock.bot.bundle import BotBundle
from genlock.bot.context import UpdateContext
from genlock.bot.screen_context import code, prompt_of
from genlock.bot.storefront.storefront import Storefront
from genlock.domain.errors import AccountNotFound, ActionNotAllowed
from genlock.domain.job import Job
from genlock.domain.money import HoldState, write_amount
from genlock.engine import operate
from genlock.engine.engine import Engine
from genlock.engine.tell import refund_message, send_queued
from genlock.i18n.catalog_texts import model_title
from genlock.i18n.translator import Html, Translator
from genlock.ports import Database, OutgoingMessage

LISTED = 10
#: how many orders on the list are read, because those of other bots are left out
ATTENTION_READ = 200

#: does something with an order and returns the note that is shown above it
Action = Callable[[UpdateContext, Job], Awaitable[Html]]


class OrderCommands:
    def __init__(
        self,
        *,
        bundle: BotBundle,
        store: Database,
        engine: Engine,
        storefront: Storefront,
        accounts: AccountCommands,
        audit: AuditLog,
    ) -> None:
        self._bundle = bundle
        self._store = store
        self._engine = engine
        self._storefront = storefront
        self._accounts = accounts
        self._audit = audit

    @property
    def commands(self) -> Mapping[str, AdminCommand]:
        return {
            "order": AdminCommand(run=self._order, usage="order"),
            "resend": AdminCommand(run=self._with_order(self._resend), usage="order"),
            "retry": AdminCommand(run=self._with_order(self._retry), usage="order"),
            "resubmit": AdminCommand(run=self._with_order(self._resubmit), usage="order", ask=self._ask_resubmit),
            "cancel": AdminCommand(run=self._with_order(self._cancel), usage="order", ask=self._ask_cancel),
            "refund": AdminCommand(run=self._with_order(self._refund), usage="order", ask=self._ask_refund),
            "orders": AdminCommand(run=self._orders, usage="user"),
            "attention": AdminCommand(run=self._attention),
        }

    # lists

    async def _orders(self, ctx: UpdateContext, args: Sequence[str]) -> OutgoingMessage:
        profile = await self._accounts.profile(argument(args))
        jobs = await self._store.jobs(account_id=profile.account_id, limit=LISTED)
        return screens.orders(ctx.translator, self._with_titles(ctx.translator, jobs), profile)

    async def _attention(self, ctx: UpdateContext, _: Sequence[str]) -> OutgoingMessage:
        ours: list[Job] = []
        for job in await self._store.jobs_needing_attention(ATTENTION_READ):
            if len(ours) == LISTED:
                break
            if not await self._is_of_another_bot(job):
                ours.append(job)
        return screens.attention(ctx.translator, self._with_titles(ctx.translator, ours))

    def _with_titles(self, t: Translator, jobs: Sequence[Job]) -> list[tuple[Job, str]]:
        models = self._storefront.catalog.models
        return [(job, model_title(models[job.model].title, t) if job.model in models else job.model) for job in jobs]

    # one order

    async def _order(self, ctx: UpdateContext, args: Sequence[str]) -> OutgoingMessage:
        return await self._card(ctx, (await self._job(order_number(args, ctx.translator.numbers))).id)

    async def _job(self, number: int) -> Job:
        job = await self._store.job(number)
        if job is None or await self._is_of_another_bot(job):
            raise Declined("no_order", code=code(number))
        return job

    async def _is_of_another_bot(self, job: Job) -> bool:
        """Whether the order came from another bot. Orders that came from no bot are visible to all operators."""
        return (await self._store.account(job.account_id)).bot not in ("", self._bundle.id)

    async def _card(self, ctx: UpdateContext, job_id: int, note: Html | None = None) -> OutgoingMessage:
        [(job, title)] = self._with_titles(ctx.translator, [await operate.find(self._engine.ctx, job_id)])
        name = await self._name(job)
        prompt = prompt_of(job, self._storefront.catalog.models.get(job.model))
        refunded = await self._is_refunded(job)
        order = screens.order(ctx.translator, job, title, name=name, prompt=prompt, refunded=refunded)
        return screens.with_note(note, order)

    async def _name(self, job: Job) -> str:
        try:
            return (await self._store.profile(job.account_id)).name
        except AccountNotFound:  # it was not ordered in a chat
            return "—"

    async def _ask_refund(self, ctx: UpdateContext, args: Sequence[str]) -> Question | OutgoingMessage:
        job = await self._job(order_number(args, ctx.translator.numbers))
        if job.hold_state is not HoldState.CAPTURED or await self._is_refunded(job):
            key = "admin.refunded_before" if job.hold_state is HoldState.CAPTURED else "admin.not_captured"
            return await self._card(ctx, job.id, ctx.translator.html(key))
        [(_, title)] = self._with_titles(ctx.translator, [job])
        return questions.refund(ctx.translator, job, title, await self._name(job))

    async def _ask_resubmit(self, ctx: UpdateContext, args: Sequence[str]) -> Question | OutgoingMessage:
        job = await self._job(order_number(args, ctx.translator.numbers))
        if not job.is_parked_submit:
            return await self._card(ctx, job.id, ctx.translator.html("admin.order_now"))
        [(_, title)] = self._with_titles(ctx.translator, [job])
        return questions.resubmit(ctx.translator, job, title, await self._name(job))

    async def _ask_cancel(self, ctx: UpdateContext, args: Sequence[str]) -> Question | OutgoingMessage:
        job = await self._job(order_number(args, ctx.translator.numbers))
        if job.ended:
            return await self._card(ctx, job.id, ctx.translator.html("admin.order_now"))
        [(_, title)] = self._with_titles(ctx.translator, [job])
        return questions.cancel(ctx.translator, job, title, await self._name(job))

    async def _is_refunded(self, job: Job) -> bool:
        if job.hold_state is not HoldState.CAPTURED:
            return False
        return await self._store.ledger_entry(operate.refund_key(job.id)) is not None

    # actions

    def _with_order(self, action: Action) -> Run:
        """Return a command that does something with an order, answered with the order as it is afterwards."""

        async def run(ctx: UpdateContext, args: Sequence[str]) -> OutgoingMessage:
            job = await self._job(order_number(args, ctx.translator.numbers))
            try:
                note = await action(ctx, job)
            except ActionNotAllowed:
                note = ctx.translator.html("admin.order_now")
            return await self._card(ctx, job.id, note)

        return run

    async def _resend(self, ctx: UpdateContext, job: Job) -> Html:
        if ctx.first:
            await operate.resend(self._engine.ctx, job.id, ctx.profile.external_id)
        await self._audit.write(ctx, "resend", code(job.id))
        return ctx.translator.html("admin.resent")

    async def _retry(self, ctx: UpdateContext, job: Job) -> Html:
        await operate.retry(self._engine.ctx, job.id, ctx.profile.external_id)
        await self._audit.write(ctx, "retry", code(job.id))
        return ctx.translator.html("admin.retried")

    async def _resubmit(self, ctx: UpdateContext, job: Job) -> Html:
        """Submit an order again that the provider may have accepted: once for each confirmation."""
        if ctx.first:
            await operate.retry(self._engine.ctx, job.id, ctx.profile.external_id, resubmit=True, token=job.lease_token)
        await self._audit.write(ctx, "retry", code(job.id))
        return ctx.translator.html("admin.resubmitted")

    async def _cancel(self, ctx: UpdateContext, job: Job) -> Html:
        await self._engine.cancel(job.id, ctx.profile.external_id)
        await self._audit.write(ctx, "cancel", code(job.id))
        return ctx.translator.html("admin.cancelled")

    async def _refund(self, ctx: UpdateContext, job: Job) -> Html:
        """Refund the credits of a delivered order, once, and tell the user."""
        t = ctx.translator
        if job.hold_state is not HoldState.CAPTURED:
            return t.html("admin.not_captured")
        message = await refund_message(self._store, self._bundle.texts, job)
        refunded = await operate.refund(self._engine.ctx, job.id, ctx.profile.external_id, message=message)
        await self._audit.write(ctx, "refund", code(job.id), write_amount(job.price))
        if not refunded:
            return t.html("admin.refunded_before")
        reached = await send_queued(self._engine.ctx, message)
        return t.html("admin.refunded", credits=t.credits(job.price), reached=screens.reached(t, reached=reached))
