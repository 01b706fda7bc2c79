"""Makes the parts of a bot, each from those that it works with."""

from dataclasses import dataclass
from functools import cached_property, partial

from genlock.bot.access import Access
from genlock.bot.admin.audit import AuditLog
from genlock.bot.admin.broadcasts import Broadcasts
from genlock.bot.admin.commands import Admin, make_admin
from genlock.bot.admin.daily_report import DailyReport
from genlock.bot.bundle import BotBundle
from genlock.bot.chat_view import ChatView
from genlock.bot.file_transfer import FileTransfer
from genlock.bot.gallery.gallery import Gallery
from genlock.bot.handlers.api_keys import ApiKeyPages
from genlock.bot.handlers.buttons import ButtonHandler
from genlock.bot.handlers.files import Files
from genlock.bot.handlers.inline import InlineQueries
from genlock.bot.handlers.messages import MessageHandler
from genlock.bot.handlers.pages import Pages
from genlock.bot.handlers.privacy import Privacy
from genlock.bot.handlers.welcome import Welcome
from genlock.bot.handlers.wishes import Wishes
from genlock.bot.money.gifts import Gifts
from genlock.bot.money.invoices import Invoices
from genlock.bot.money.payments import Payments
from genlock.bot.order.draft_view import DraftView
from genlock.bot.order.groups import Groups
from genlock.bot.order.improve import Improvements
from genlock.bot.order.job_ends import JobEnds
from genlock.bot.order.next_steps import NextSteps
from genlock.bot.order.orders import Orders
from genlock.bot.order.originals import Originals
from genlock.bot.order.presets import Presets
from genlock.bot.order.result_files import ResultFiles
from genlock.bot.order.voices import Voices
from genlock.bot.quotas import Quotas
from genlock.bot.router import BotRouter
from genlock.bot.rules import BotRules
from genlock.bot.samples import Samples
from genlock.bot.storefront.favourites import Favourites
from genlock.bot.storefront.popularity import Popularity
from genlock.bot.storefront.storefront import Storefront
from genlock.channels.telegram.stars import TelegramStars
from genlock.channels.telegram.update_sources import INLINE_QUERY
from genlock.domain.current_catalog import CurrentCatalog
from genlock.engine.accounts import AccountActions
from genlock.engine.engine import Engine
from genlock.engine.file_storage import FileStorage
from genlock.engine.refunds import Refunds
from genlock.engine.sell import SaleRules, Seller
from genlock.engine.tell import SendQueued, Tell, send_queued, tell
from genlock.media.download import Downloads
from genlock.ports import Database
from genlock.ports.media_reader import MediaReader


@dataclass(kw_only=True)
class BotParts:
    """What a bot is given, and the parts that are made of it, each when it is first needed."""

    bundle: BotBundle
    store: Database
    engine: Engine
    catalog: CurrentCatalog
    storage: FileStorage
    media: MediaReader
    downloads: Downloads

    # what is sold, and how the chat shows it

    @cached_property
    def storefront(self) -> Storefront:
        rules, providers = self.bundle.rules, self.engine.ctx.providers
        storefront = Storefront(
            self.catalog.get(), markup=rules.markup, credit_usd=rules.credit_usd, providers=providers
        )
        self.catalog.watch(storefront.use_catalog)
        return storefront

    @cached_property
    def view(self) -> ChatView:
        return ChatView(caller=self.bundle.caller, store=self.store)

    @cached_property
    def samples(self) -> Samples:
        return Samples(bundle=self.bundle, store=self.store, storefront=self.storefront)

    @cached_property
    def drafts(self) -> DraftView:
        return DraftView(
            view=self.view,
            store=self.store,
            storefront=self.storefront,
            rules=self.bundle.rules,
            popularity=Popularity(self.store, self.bundle.id, self.storefront.learn),
            samples=self.samples,
        )

    @cached_property
    def wishes(self) -> Wishes:
        return Wishes(view=self.view, drafts=self.drafts, storefront=self.storefront)

    @cached_property
    def pages(self) -> Pages:
        return Pages(
            view=self.view,
            drafts=self.drafts,
            store=self.store,
            orders=self.orders,
            invoices=self.invoices,
            gifts=self.gifts,
            bundle=self.bundle,
        )

    @cached_property
    def favourites(self) -> Favourites:
        return Favourites(
            view=self.view, drafts=self.drafts, store=self.store, storefront=self.storefront, pages=self.pages
        )

    @cached_property
    def gallery(self) -> Gallery:
        return Gallery(
            view=self.view,
            drafts=self.drafts,
            store=self.store,
            storefront=self.storefront,
            orders=self.orders,
            pages=self.pages,
            samples=self.samples,
            admin=self.admin,
            audit=AuditLog(self.bundle, self.store),
        )

    # orders

    @cached_property
    def quotas(self) -> Quotas:
        return Quotas(self.store, self.bundle.rules)

    @cached_property
    def seller(self) -> Seller:
        rules = _sale_rules(self.bundle.rules)
        return Seller(engine=self.engine, store=self.store, catalog=self.catalog, rules=rules)

    @cached_property
    def transfer(self) -> FileTransfer:
        return FileTransfer(
            caller=self.bundle.caller, storage=self.storage, media=self.media, transfers=self.downloads.transfers
        )

    @cached_property
    def files(self) -> Files:
        return Files(
            view=self.view,
            drafts=self.drafts,
            store=self.store,
            storefront=self.storefront,
            quotas=self.quotas,
            transfer=self.transfer,
        )

    @cached_property
    def job_ends(self) -> JobEnds:
        receive = self.engine.updates.receive if self.engine.updates else self.store.store_update
        return JobEnds(bundle=self.bundle, store=self.store, receive=receive)

    @cached_property
    def orders(self) -> Orders:
        return Orders(
            view=self.view,
            drafts=self.drafts,
            storefront=self.storefront,
            seller=self.seller,
            engine=self.engine,
            quotas=self.quotas,
            files=self.files,
            store=self.store,
            job_ends=self.job_ends,
            bundle=self.bundle,
            rng=self.engine.ctx.rng,
        )

    @cached_property
    def next_steps(self) -> NextSteps:
        return NextSteps(
            view=self.view,
            drafts=self.drafts,
            store=self.store,
            storefront=self.storefront,
            orders=self.orders,
            files=self.files,
            results=ResultFiles(
                store=self.store,
                transfer=self.transfer,
                quotas=self.quotas,
                downloads=self.downloads,
                media=self.media,
            ),
        )

    @cached_property
    def voices(self) -> Voices:
        return Voices(
            view=self.view,
            files=self.files,
            store=self.store,
            storefront=self.storefront,
            seller=self.seller,
            quotas=self.quotas,
            bundle=self.bundle,
        )

    @cached_property
    def improvements(self) -> Improvements:
        return Improvements(view=self.view, drafts=self.drafts, storefront=self.storefront, orders=self.orders)

    # money and operators

    @cached_property
    def tell(self) -> Tell:
        return partial(tell, self.engine.ctx)

    @cached_property
    def send_queued(self) -> SendQueued:
        return partial(send_queued, self.engine.ctx)

    @cached_property
    def access(self) -> Access:
        return Access(self.bundle, self.store)

    @cached_property
    def invoices(self) -> Invoices:
        return Invoices(bundle=self.bundle, store=self.store, view=self.view, access=self.access)

    @cached_property
    def refunds(self) -> Refunds:
        service = TelegramStars(self.bundle.caller)
        return Refunds(
            bot=self.bundle.id,
            store=self.store,
            texts=self.bundle.texts,
            send_queued=self.send_queued,
            service=service,
        )

    @cached_property
    def gifts(self) -> Gifts:
        return Gifts(bundle=self.bundle, store=self.store, quotas=self.quotas, send_queued=self.send_queued)

    @cached_property
    def broadcasts(self) -> Broadcasts:
        return Broadcasts(bundle=self.bundle, store=self.store)

    @cached_property
    def admin(self) -> Admin:
        return make_admin(
            bundle=self.bundle,
            view=self.view,
            store=self.store,
            storefront=self.storefront,
            engine=self.engine,
            refunds=self.refunds,
            broadcasts=self.broadcasts,
            actions=AccountActions(
                store=self.store, texts=self.bundle.texts, tell=self.tell, send_queued=self.send_queued
            ),
        )

    @cached_property
    def privacy(self) -> Privacy:
        return Privacy(bundle=self.bundle, store=self.store, pages=self.pages, send_queued=self.send_queued)

    @cached_property
    def api_keys(self) -> ApiKeyPages:
        return ApiKeyPages(bundle=self.bundle, store=self.store, pages=self.pages)

    # what updates are handed to

    @cached_property
    def messages(self) -> MessageHandler:
        return MessageHandler(
            view=self.view,
            drafts=self.drafts,
            storefront=self.storefront,
            orders=self.orders,
            pages=self.pages,
            files=self.files,
            wishes=self.wishes,
            welcome=Welcome(view=self.view, store=self.store, bundle=self.bundle),
            next_steps=self.next_steps,
            voices=self.voices,
            gallery=self.gallery,
            favourites=self.favourites,
            gifts=self.gifts,
            admin=self.admin,
            privacy=self.privacy,
            api_keys=self.api_keys,
            bundle=self.bundle,
        )

    @cached_property
    def presets(self) -> Presets:
        return Presets(
            view=self.view,
            drafts=self.drafts,
            store=self.store,
            storefront=self.storefront,
            improvements=self.improvements,
            favourites=self.favourites,
            rng=self.engine.ctx.rng,
        )

    @cached_property
    def originals(self) -> Originals:
        return Originals(
            view=self.view, drafts=self.drafts, orders=self.orders, store=self.store, downloads=self.downloads
        )

    @cached_property
    def buttons(self) -> ButtonHandler:
        with_buttons = (
            self.wishes, self.pages, self.next_steps, self.originals, self.improvements, self.favourites, self.gallery,
            self.voices, self.privacy, self.api_keys,
        )  # fmt: skip
        return ButtonHandler(
            view=self.view,
            drafts=self.drafts,
            store=self.store,
            storefront=self.storefront,
            orders=self.orders,
            pages=self.pages,
            wishes=self.wishes,
            presets=self.presets,
            admin=self.admin,
            handlers={verb: handle for part in with_buttons for verb, handle in part.button_handlers.items()},
            rng=self.engine.ctx.rng,
        )

    @cached_property
    def inline(self) -> InlineQueries:
        return InlineQueries(
            bundle=self.bundle,
            store=self.store,
            storefront=self.storefront,
            access=self.access,
            observer=self.engine.ctx.observer,
        )

    @cached_property
    def payments(self) -> Payments:
        return Payments(
            bundle=self.bundle,
            store=self.store,
            view=self.view,
            drafts=self.drafts,
            refunds=self.refunds,
            send_queued=self.send_queued,
        )


def make_router(parts: BotParts) -> BotRouter:
    """Make a bot's router, and connect the bot with the engine."""
    bundle, updates = parts.bundle, parts.engine.updates
    parts.engine.ctx.end_handlers[bundle.id] = parts.job_ends.job_ended
    if updates is not None and bundle.rules.inline_mode:
        updates.volatile[bundle.id, INLINE_QUERY] = parts.inline.take
    return BotRouter(
        report=DailyReport(bundle=bundle, store=parts.store, storefront=parts.storefront),
        bundle=bundle,
        view=parts.view,
        store=parts.store,
        transfer=parts.transfer,
        messages=parts.messages,
        buttons=parts.buttons,
        job_ends=parts.job_ends,
        inline=parts.inline,
        groups=Groups(view=parts.view, job_ends=parts.job_ends, storefront=parts.storefront),
        invoices=parts.invoices,
        payments=parts.payments,
        gifts=parts.gifts,
        broadcasts=parts.broadcasts,
        access=parts.access,
        privacy=parts.privacy,
    )


def _sale_rules(rules: BotRules) -> SaleRules:
    return SaleRules(
        markup=rules.markup,
        credit_usd=rules.credit_usd,
        free_per_day=rules.free_per_day,
        running_max=rules.running_max,
        per_minute=rules.per_minute,
        per_hour=rules.per_hour,
    )
