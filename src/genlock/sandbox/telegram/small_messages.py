"""Bot API methods for messages without a text or a file: locations, venues, contacts, dice and paid media."""

from typing import Any

from genlock.sandbox.telegram.api_call import CallArguments, bad_request
from genlock.sandbox.telegram.edits import EDITABLE, apply_change, editable_message
from genlock.sandbox.telegram.markup import read_inline, read_markup
from genlock.sandbox.telegram.messages import (
    Method,
    caption_of,
    chat_for_sending,
    display_flags,
    input_media,
    media_kind,
    post_message,
    reply_and_thread,
)
from genlock.sandbox.telegram.state import TelegramState

#: the highest value of each animated emoji
DICE = {"🎲": 6, "🎯": 6, "🎳": 6, "🏀": 5, "⚽": 5, "🎰": 64}
LIVE_SECONDS = (60, 86_400)
LIVE_FOREVER = 0x7FFFFFFF
LIVE_FIELDS = ("live_period", "heading", "proximity_alert_radius")
PAID_KINDS = {"photo", "video", "live_photo"}
PAID_STARS_MAX = 1_000_000
PAID_MEDIA_MAX = 10


async def send_location(state: TelegramState, arguments: CallArguments) -> Any:
    period = arguments.number("live_period")
    if period and period != LIVE_FOREVER and not LIVE_SECONDS[0] <= period <= LIVE_SECONDS[1]:
        raise bad_request("wrong live location period specified")
    return _sent(state, arguments, "location", {"location": location_of(arguments) | _live_fields(arguments)})


async def send_venue(state: TelegramState, arguments: CallArguments) -> Any:
    return _sent(state, arguments, "venue", venue_of(arguments))


async def send_contact(state: TelegramState, arguments: CallArguments) -> Any:
    contact = {name: arguments.required(name) for name in ("phone_number", "first_name")}
    return _sent(state, arguments, "contact", {"contact": contact | _given(arguments, "last_name", "vcard")})


async def send_dice(state: TelegramState, arguments: CallArguments) -> Any:
    emoji = arguments.text("emoji") or "🎲"
    if emoji not in DICE:
        raise bad_request("EMOTICON_INVALID")
    return _sent(state, arguments, "dice", {"dice": {"emoji": emoji, "value": state.rng.randint(1, DICE[emoji])}})


async def send_paid_media(state: TelegramState, arguments: CallArguments) -> Any:
    """Send media that users pay for. The simulated users cannot buy it."""
    items, price = arguments.objects("media", "paid media"), arguments.number("star_count")
    if not 1 <= price <= PAID_STARS_MAX:
        raise bad_request("invalid media price specified")
    if not 1 <= len(items) <= PAID_MEDIA_MAX:
        raise bad_request("invalid number of paid media specified")
    if any(media_kind(item) not in PAID_KINDS for item in items):
        raise bad_request("can't parse InputPaidMedia: invalid type specified")
    chat = chat_for_sending(state, arguments, media_kind(items[0]))
    caption = caption_of(arguments)
    markup = read_markup(arguments)
    reply_and_thread(state, chat, arguments)
    shown = [{"type": item["type"]} | await input_media(state.media, item, arguments) for item in items]
    content = {"paid_media": {"star_count": price, "paid_media": shown}} | caption
    content |= display_flags(arguments, content)
    return state.show(post_message(state, chat, arguments, content, markup=markup))


async def edit_live_location(state: TelegramState, arguments: CallArguments) -> Any:
    location = location_of(arguments) | _live_fields(arguments)
    return _changed_location(state, arguments, location)


async def stop_live_location(state: TelegramState, arguments: CallArguments) -> Any:
    return _changed_location(state, arguments, None)


def _changed_location(state: TelegramState, arguments: CallArguments, location: dict[str, Any] | None) -> Any:
    """Change a live location; None stops it. Without a new period the old one stays."""
    markup, message = read_inline(arguments), editable_message(state, arguments, kinds=(*EDITABLE, "location"))
    if message.kind != "location":
        raise bad_request("there is no live location in the message to edit")
    old = message.content["location"]
    period = old.get("live_period", 0)
    if not period or (period != LIVE_FOREVER and state.now() >= message.date + period):
        raise bad_request("message can't be edited")
    if location is None:
        kept = {name: value for name, value in old.items() if name not in LIVE_FIELDS}
        state.change(message, {"location": kept}, markup)
        return state.show(message)
    return apply_change(state, message, {"location": {"live_period": period} | location}, markup)


def location_of(arguments: CallArguments) -> dict[str, Any]:
    for name in ("latitude", "longitude"):
        if not arguments.has(name):
            raise bad_request(f"{name} is empty")
    return _numbers(arguments, "latitude", "longitude", "horizontal_accuracy")


def venue_of(arguments: CallArguments) -> dict[str, Any]:
    """Return the fields of a venue. Foursquare's identifiers replace Google's."""
    location = location_of(arguments)
    google, foursquare = ("google_place_id", "google_place_type"), ("foursquare_id", "foursquare_type")
    provider = foursquare if any(map(arguments.has, foursquare)) else google
    venue = {"location": location} | _given(arguments, "title", "address", *provider)
    return {"venue": venue, "location": location}


def _live_fields(arguments: CallArguments) -> dict[str, Any]:
    return {name: arguments.number(name) for name in LIVE_FIELDS if arguments.number(name)}


def _numbers(arguments: CallArguments, *names: str) -> dict[str, Any]:
    try:
        return {name: float(arguments.text(name)) for name in names if arguments.has(name)}
    except ValueError:
        raise bad_request("invalid location specified") from None


def _given(arguments: CallArguments, *names: str) -> dict[str, Any]:
    return {name: arguments.text(name) for name in names if arguments.has(name)}


def _sent(state: TelegramState, arguments: CallArguments, kind: str, content: dict[str, Any]) -> Any:
    markup = read_markup(arguments)
    chat = chat_for_sending(state, arguments, kind)
    return state.show(post_message(state, chat, arguments, content, markup=markup))


METHODS: dict[str, Method] = {
    "sendLocation": send_location,
    "editMessageLiveLocation": edit_live_location,
    "stopMessageLiveLocation": stop_live_location,
    "sendVenue": send_venue,
    "sendContact": send_contact,
    "sendDice": send_dice,
    "sendPaidMedia": send_paid_media,
}
