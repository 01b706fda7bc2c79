"""Forwards, copies, pins, protection, topics and rights in the simulated Telegram."""

import pytest

from genlock.sandbox.telegram.api_call import ApiError, CallArguments
from genlock.sandbox.telegram.limiter import Limiter, Limits
from genlock.sandbox.telegram.markup import read_markup
from genlock.sandbox.telegram.simulated_user import SimulatedUser
from genlock.sandbox.telegram.simulator import TelegramSimulator
from tests.sandbox.client_libraries import ApiFailure, Bytes, Client
from tests.sandbox.sample_media import picture, sample


async def test_several_messages_are_forwarded_or_copied_at_once_and_missing_ones_are_skipped(
    client: Client, ann: SimulatedUser
) -> None:
    ids = [(await client.call("sendMessage", chat_id=ann.id, text=text))["message_id"] for text in ("one", "two")]
    for method in ("forwardMessages", "copyMessages"):
        sent = await client.call(method, chat_id=ann.id, from_chat_id=ann.id, message_ids=[*ids, 9999])
        assert [message.id for message in ann.messages[-2:]] == [message["message_id"] for message in sent]
        assert [message.text for message in ann.messages[-2:]] == ["one", "two"]
    with pytest.raises(ApiFailure, match="there are no messages to forward"):
        await client.call("forwardMessages", chat_id=ann.id, from_chat_id=ann.id, message_ids=[9999])


async def test_a_protected_message_cannot_be_forwarded(client: Client, ann: SimulatedUser) -> None:
    sent = await client.call("sendMessage", chat_id=ann.id, text="mine", protect_content=True)
    assert sent["has_protected_content"] is True
    with pytest.raises(ApiFailure, match="the message can't be forwarded"):
        await client.call("forwardMessage", chat_id=ann.id, from_chat_id=ann.id, message_id=sent["message_id"])


async def test_service_messages_are_neither_forwarded_nor_copied_nor_pinned(
    client: Client, telegram: TelegramSimulator, ann: SimulatedUser
) -> None:
    friends = telegram.group("Friends", [ann])
    await friends.set_bot("administrator", by=ann)
    await friends.add(telegram.add_user("Bob"))
    place = {"chat_id": friends.id, "message_id": friends.messages[-1].id}
    for method, given, error in (
        ("forwardMessage", {"from_chat_id": friends.id}, "the message can't be forwarded"),
        ("copyMessage", {"from_chat_id": friends.id}, "the message can't be copied"),
        ("pinChatMessage", {}, "service messages can't be pinned"),
    ):
        with pytest.raises(ApiFailure, match=error):
            await client.call(method, **place, **given)


async def test_an_invoice_is_forwarded_but_not_copied(client: Client, ann: SimulatedUser) -> None:
    given = {"title": "T", "description": "D", "payload": "p", "currency": "XTR"}
    sent = await client.call("sendInvoice", chat_id=ann.id, prices=[{"label": "a", "amount": 1}], **given)
    place = {"chat_id": ann.id, "from_chat_id": ann.id, "message_id": sent["message_id"]}
    assert (await client.call("forwardMessage", **place))["invoice"]["title"] == "T"
    with pytest.raises(ApiFailure, match="the message can't be copied"):
        await client.call("copyMessage", **place)


async def test_a_group_that_forbids_photos_takes_no_forwarded_ones(
    client: Client, telegram: TelegramSimulator, ann: SimulatedUser
) -> None:
    friends = telegram.group("Friends", [ann])
    await friends.forbid("photo")
    sent = await client.call("sendPhoto", chat_id=ann.id, photo=Bytes(picture(), "p.png"))
    with pytest.raises(ApiFailure, match="the message can't be forwarded"):
        await client.call("forwardMessage", chat_id=friends.id, from_chat_id=ann.id, message_id=sent["message_id"])


async def test_an_administrator_may_send_what_members_may_not(
    client: Client, telegram: TelegramSimulator, ann: SimulatedUser
) -> None:
    friends = telegram.group("Friends", [ann])
    await friends.forbid("text")
    with pytest.raises(ApiFailure, match="not enough rights to send text messages to the chat"):
        await client.call("sendMessage", chat_id=friends.id, text="x")
    await friends.set_bot("administrator", by=ann)
    assert (await client.call("sendMessage", chat_id=friends.id, text="x"))["text"] == "x"


async def test_forwarded_albums_stay_together(client: Client, ann: SimulatedUser) -> None:
    items = [{"type": "photo", "media": Bytes(picture(), "p.png")} for _ in range(2)]
    album = await client.call("sendMediaGroup", chat_id=ann.id, media=items)
    alone = await client.call("sendMessage", chat_id=ann.id, text="alone")
    ids = [message["message_id"] for message in (*album, alone)]
    await client.call("copyMessages", chat_id=ann.id, from_chat_id=ann.id, message_ids=ids)
    first, second, third = (message.album for message in ann.messages[-3:])
    assert first is not None
    assert first == second != album[0]["media_group_id"]
    assert third is None


async def test_a_caption_is_shown_above_pictures_only_while_there_is_one(client: Client, ann: SimulatedUser) -> None:
    photo, above = Bytes(picture(), "p.png"), {"show_caption_above_media": True}
    sent = await client.call("sendPhoto", chat_id=ann.id, photo=photo, caption="c", **above)
    assert sent["show_caption_above_media"] is True
    place = {"chat_id": ann.id, "message_id": sent["message_id"]}
    assert "show_caption_above_media" not in await client.call("editMessageCaption", **place, caption="d")
    assert (await client.call("editMessageCaption", **place, caption="d", **above))["show_caption_above_media"] is True
    assert "show_caption_above_media" not in await client.call("sendPhoto", chat_id=ann.id, photo=photo, **above)


async def test_the_message_pinned_last_is_shown_until_it_is_unpinned_or_deleted(
    client: Client, ann: SimulatedUser
) -> None:
    ids = [(await client.call("sendMessage", chat_id=ann.id, text=text))["message_id"] for text in ("one", "two")]
    for number in ids:
        assert await client.call("pinChatMessage", chat_id=ann.id, message_id=number) is True
    assert (await client.call("getChat", chat_id=ann.id))["pinned_message"]["text"] == "two"
    await client.call("deleteMessage", chat_id=ann.id, message_id=ids[1])
    assert (await client.call("getChat", chat_id=ann.id))["pinned_message"]["text"] == "one"
    assert await client.call("unpinChatMessage", chat_id=ann.id) is True
    assert "pinned_message" not in await client.call("getChat", chat_id=ann.id)


async def test_groups_without_topics_ignore_a_topic_and_private_chats_refuse_it(
    client: Client, telegram: TelegramSimulator, ann: SimulatedUser
) -> None:
    friends = telegram.group("Friends", [ann], kind="supergroup")
    sent = await client.call("sendMessage", chat_id=friends.id, text="x", message_thread_id=77)
    assert "message_thread_id" not in sent
    with pytest.raises(ApiFailure, match=r"(?i)message thread not found"):
        await client.call("sendMessage", chat_id=ann.id, text="x", message_thread_id=77)


async def test_an_edit_needs_the_right_to_send_its_kind(
    client: Client, telegram: TelegramSimulator, ann: SimulatedUser
) -> None:
    friends = telegram.group("Friends", [ann])
    sent = await client.call("sendMessage", chat_id=friends.id, text="x")
    await friends.forbid("photo")
    photo = {"type": "photo", "media": Bytes(picture(), "x.png")}
    with pytest.raises(ApiFailure, match=r"(?i)not enough rights to send photos"):
        await client.call("editMessageMedia", chat_id=friends.id, message_id=sent["message_id"], media=photo)


async def test_a_message_in_a_migrated_group_cannot_be_deleted(
    client: Client, telegram: TelegramSimulator, ann: SimulatedUser
) -> None:
    friends = telegram.group("Friends", [ann])
    sent = await client.call("sendMessage", chat_id=friends.id, text="x")
    await friends.migrate()
    with pytest.raises(ApiFailure):
        await client.call("deleteMessage", chat_id=friends.id, message_id=sent["message_id"])
    assert telegram.journal[-1].error == "Bad Request: group chat was upgraded to a supergroup chat"


async def test_a_group_has_a_creator_and_administrators(
    client: Client, telegram: TelegramSimulator, ann: SimulatedUser
) -> None:
    friends = telegram.group("Friends", [ann, telegram.add_user("Bob")])
    await friends.set_bot("administrator", by=ann)
    found = await client.call("getChatAdministrators", chat_id=friends.id)
    assert [member["status"] for member in found] == ["creator", "administrator"]


async def test_an_uploaded_thumbnail_is_shown(client: Client, ann: SimulatedUser) -> None:
    content, name = sample("audio")
    small, large = picture(100, 50), picture(400, 400)
    sent = await client.call(
        "sendAudio", chat_id=ann.id, audio=Bytes(content, name), thumbnail=Bytes(small, "small.png")
    )
    thumbnail = sent["audio"]["thumbnail"]
    encoded = await client.download(thumbnail["file_id"])
    assert (thumbnail["width"], thumbnail["file_size"], encoded[:2]) == (100, len(encoded), b"\xff\xd8"), "a JPEG"
    sent = await client.call("sendAudio", chat_id=ann.id, audio=Bytes(content, name), thumbnail=Bytes(large, "l.png"))
    assert "thumbnail" not in sent["audio"], "too large"


async def test_a_webhook_keeps_its_address_and_certificate(client: Client, telegram: TelegramSimulator) -> None:
    given = {"url": "https://bot.example/hook", "ip_address": "127.0.0.9", "certificate": Bytes(b"pem", "c.pem")}
    await client.call("setWebhook", **given)
    info = await client.call("getWebhookInfo")
    assert (info["ip_address"], info["has_custom_certificate"]) == ("127.0.0.9", True)
    before = telegram.state.updates.webhook
    await client.call("setWebhook", **given)
    assert telegram.state.updates.webhook is not before, "a certificate is always taken anew"
    await client.call("deleteWebhook")
    info = await client.call("getWebhookInfo")
    assert (info.get("ip_address"), info["has_custom_certificate"]) == (None, False)


@pytest.mark.parametrize(
    ("command", "description", "error"),
    [
        ("Menu", "d", "bot_command_invalid"),
        ("a-b", "d", "bot_command_invalid"),
        ("/", "d", "command must be non-empty"),
        ("x" * 33, "d", "command length must not exceed 32"),
        ("menu", " ", "command description must be non-empty"),
        ("menu", "d" * 257, "command description length must not exceed 256"),
    ],
)
async def test_a_bad_command_is_refused(client: Client, command: str, description: str, error: str) -> None:
    with pytest.raises(ApiFailure, match=error):
        await client.call("setMyCommands", commands=[{"command": command, "description": description}])


async def test_a_command_is_kept_without_its_slash_and_for_a_language_of_two_letters(client: Client) -> None:
    await client.call("setMyCommands", commands=[{"command": " /menu", "description": " Menu "}])
    assert await client.call("getMyCommands") == [{"command": "menu", "description": "Menu"}]
    for method, given in (("setMyCommands", {"commands": []}), ("setMyDescription", {"description": "x"})):
        with pytest.raises(ApiFailure, match="invalid language code specified"):
            await client.call(method, language_code="rus", **given)


async def test_an_invoice_in_another_currency_needs_a_payment_provider(client: Client, ann: SimulatedUser) -> None:
    given = {"title": "T", "description": "D", "payload": "p", "currency": "EUR"}
    prices = [{"label": "a", "amount": 150}, {"label": "b", "amount": 50}]
    with pytest.raises(ApiFailure, match=r"(?i)payment_provider_invalid"):
        await client.call("sendInvoice", chat_id=ann.id, prices=prices, **given)
    sent = await client.call("sendInvoice", chat_id=ann.id, prices=prices, provider_token="1:TEST:x", **given)
    assert (sent["invoice"]["currency"], sent["invoice"]["total_amount"]) == ("EUR", 200)


async def test_buttons_without_a_text_are_dropped(client: Client, ann: SimulatedUser) -> None:
    keyboard = {"inline_keyboard": [[{"text": "", "callback_data": "a"}, {"text": "B", "callback_data": "b"}]]}
    await client.call("sendMessage", chat_id=ann.id, text="x", reply_markup=keyboard)
    assert [button["text"] for button in ann.last.buttons] == ["B"]
    await client.call("sendMessage", chat_id=ann.id, text="x", reply_markup={"keyboard": [[{"text": ""}]]})
    assert ann.last.markup is None


async def test_buttons_beyond_the_twelfth_of_a_row_are_dropped(client: Client, ann: SimulatedUser) -> None:
    row = [{"text": str(number), "callback_data": "x"} for number in range(13)]
    await client.call("sendMessage", chat_id=ann.id, text="x", reply_markup={"inline_keyboard": [row]})
    assert [button["text"] for button in ann.last.buttons] == [str(number) for number in range(12)]


def test_a_button_has_one_action_and_an_empty_one_does_not_count() -> None:
    def made(**actions: str) -> object:
        markup = read_markup(CallArguments({"reply_markup": {"inline_keyboard": [[{"text": "x", **actions}]]}}))
        assert markup is not None
        return markup["inline_keyboard"][0][0]

    assert made(callback_data="a", url="https://x.example") == {"text": "x", "url": "https://x.example/"}
    assert made(callback_data="a", url="") == {"text": "x", "callback_data": "a"}
    assert made(switch_inline_query="") == {"text": "x", "switch_inline_query": ""}
    with pytest.raises(ApiError, match="Text buttons are unallowed in the inline keyboard"):
        made(callback_data="")


def test_large_uploads_of_equal_size_wait_for_each_other_and_then_get_a_429() -> None:
    limiter = Limiter(limits=Limits(), clock=lambda: 100.0)
    waits = [limiter.upload_wait(9_000_000) for _ in range(8)]
    with pytest.raises(ApiError, match="retry after 60"):
        limiter.upload_wait(9_000_000)
    assert waits[0] == 0.0
    assert waits == sorted(waits)
    assert 5.0 < waits[-1] < 6.0
    assert limiter.upload_wait(9_000_001) == 0.0, "another size"
    assert limiter.upload_wait(100_000) == 0.0, "small uploads are not queued"
