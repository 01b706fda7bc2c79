"""What each of Telegram's refusals means: the one table, from the texts of the Bot API server and of TDLib below it.

Telegram documents only the `parameters` of an error, so the meaning must be read from its description. Patterns are
compared ignoring case, without the prefix `Bad Request: `, from the beginning of the text; `*` stands for anything but
a quotation mark. Many descriptions quote what we or the provider sent (a URL, a tag, a file name), so a pattern that
could match in the middle would let that content decide what happens to a result.
"""

import re
from enum import StrEnum, auto
from functools import cache


class Meaning(StrEnum):
    """What a refusal says, and so what can be done."""

    NOT_MODIFIED = auto()  #: the message already shows exactly this: counts as done
    OVERTAKEN = auto()  #: another edit of the message replaced this one: its outcome is unknown
    HAS_MEDIA = auto()  #: a text edit was refused because the message shows a file
    HAS_NO_MEDIA = auto()  #: a caption edit was refused because the message is a text
    ALREADY_REFUNDED = auto()  #: the payment was refunded before: counts as done
    QUERY_TOO_OLD = auto()  #: a callback query or a pre-checkout query has expired
    BOT_FROZEN = auto()  #: Telegram refuses everything this bot does: jobs wait for an operator
    RETRY = auto()  #: a passing failure inside Telegram: try again later
    FILE_REFUSED = auto()  #: Telegram does not know this file id, or not as this kind: upload the file again
    BUTTONS_REFUSED = auto()  #: show the same without the button
    TEXT_REFUSED = auto()  #: show the same with a plain or shorter text
    PLACEHOLDER_GONE = auto()  #: the message to edit does not exist or may not be edited: send a new one
    RECIPIENT_UNREACHABLE = auto()  #: the user, the group or the topic takes no messages from this bot
    LEVEL_REFUSED = auto()  #: this content cannot be shown this way: try a lower level
    CALL_INVALID = auto()  #: our call is wrong: a bug of ours


#: the first pattern that matches counts
PATTERNS: tuple[tuple[Meaning, tuple[str, ...]], ...] = (
    (Meaning.NOT_MODIFIED, ("message is not modified", "message_not_modified")),
    # `editMessageMedia` was the older spelling
    (Meaning.OVERTAKEN, ("canceled by new edit*", "cancelled by new edit*", "random_id_duplicate")),
    (Meaning.HAS_MEDIA, ("there is no text in the message to edit",)),
    (Meaning.HAS_NO_MEDIA, ("there is no caption in the message to edit",)),
    (Meaning.ALREADY_REFUNDED, ("*already_refunded", "*already refunded", "*already been refunded")),
    (Meaning.QUERY_TOO_OLD, ("query is too old", "query id is invalid", "query_id_invalid")),
    (
        Meaning.BOT_FROZEN,
        (
            "frozen_*",
            "logged out",
            "user_deactivated_ban",
            "auth_key_*",
            "session_revoked",
            "session_expired",
            "access_token_*",
        ),
    ),
    (
        Meaning.RETRY,
        (
            "file_part_*_missing",
            "failed to upload file",
            "failed to reupload file",
            "file_upload_restart*",
            "internal server error during file upload",
            "group send failed",
            "message send failed",
            "message was not sent",
            "request aborted",
            "msg_wait_failed",
            "msg_wait_timeout",
            "worker_busy_too_long_retry",
            "flood_*",
            "slowmode_wait_*",
            "peer_flood",
            "timeout",
            "rpc_*",
            "interdc_*",
            "wrong file_id or the file is temporarily unavailable",
            # normally with the new id in `parameters`, which is handled before
            "group chat was upgraded to a supergroup chat",
        ),
    ),
    (
        Meaning.FILE_REFUSED,
        (
            "wrong remote file identifier",
            "invalid remote file identifier",
            "remote file identifier must be non-empty",
            "wrong file identifier specified",
            "wrong file_id",
            "invalid file identifier",
            "invalid file_id",
            "unknown file identifier",
            "can't use file of type",
            "unexpected conversion type",
            "file_reference_*",
            "file_id_invalid",
            "location_invalid",
            "file not found",
        ),
    ),
    (
        Meaning.BUTTONS_REFUSED,
        (
            "inline keyboard*",
            "keyboard button*",
            "can't parse inline keyboard*",
            "can't parse keyboard*",
            "can't parse reply keyboard*",
            "can't use switch_inline_query*",
            "can't use callbackwithpassword inline button",
            "text buttons are unallowed*",
            "link to a user can't be used in*",
            "web app buttons can be used in private chats only",
            "object expected as reply markup",
            "reply markup is too long",
            "reply_markup_*",
            "keyboard_*",
            "button_*",
            "url_invalid",
            "loginurl*",
            'field "inline_keyboard"',
            'field "keyboard"',
        ),
    ),
    (
        Meaning.TEXT_REFUSED,
        (
            "message to be replied not found",
            "reply message not found",
            "replied message not found",
            "reply_message_id_invalid",
            "reply_to_*",
            "quote_text_invalid",
            "message_effect_*",
            "effect_id_invalid",
            "message caption is too long",
            "caption is too long",
            "media_caption_too_long",
            "caption_too_long",
            "message is too long",
            "message_too_long",
            "text is too long",
            "text_too_long",
            "message text is empty",
            "message_empty",
            "text must be non-empty",
            "text must be encoded in utf-8",
            "strings must be encoded in utf-8",
            "input message content is not specified",
            "can't parse entities",
            "can't parse messageentity",
            "entity_*",
            "entities_*",
            "entity begin*",
            "receive an entity with incorrect*",
            "invalid custom emoji identifier",
            "unsupported parse_mode",
            "invalid date-time format",
            "link preview url must be encoded in utf-8",
            "title must be encoded in utf-8",
            "audio title must be encoded in utf-8",
            "audio performer must be encoded in utf-8",
        ),
    ),
    (
        Meaning.PLACEHOLDER_GONE,
        (
            "message to * not found",
            "message_id_invalid",
            "msg_id_invalid",
            "message_not_found",
            "message was deleted",
            "the message was deleted",
            "message not found",
            "message can't be edited",
            "message can't be deleted",
            "message media can't be edited",
            "message_edit_time_expired",
            "message_author_required",
            "message_edit_forbidden",
            "inline_bot_required",
            "can't change media type in the album",
            "message content type can't be used in an album",
            "message identifier is not specified",
            "invalid message identifier",
            "wrong message identifier",
        ),
    ),
    (
        Meaning.RECIPIENT_UNREACHABLE,
        (
            "bot was blocked by the user",
            "bot was kicked from*",
            "bot is not a member of*",
            "bot can't initiate conversation*",
            "bot can't send messages to*",
            "bots can't send messages to*",
            "user is deactivated",
            "the group chat was deleted",
            "user_is_blocked",
            "user_is_bot",
            "user_id_invalid",
            "user_deactivated",
            "user_banned_in_channel",
            "user_not_participant",
            "user_blocked",
            "user_privacy_restricted",
            "you_blocked_user",
            "input_user_deactivated",
            "chat not found",
            "private chat not found",
            "user not found",
            "bot not found",
            "chat_id_invalid",
            "peer_id_invalid",
            "chat is deactivated",
            "chat is not accessible",
            "invalid chat identifier",
            "have no access to the*",
            "have no write access to the chat",
            "have no rights to send a message",
            "can't access the chat",
            "can't access the topic",
            "can't access the user",
            "need administrator rights in the channel chat",
            "chat_admin_required",
            "chat_forbidden",
            "chat_guest_send_forbidden",
            "chat_restricted",
            "chat_write_forbidden",
            "channel_invalid",
            "channel_private",
            "channel_public_group_na",
            "bot_groups_blocked",
            "right_forbidden",
            "allow_payment_required*",
            "privacy_premium_required",
            "premium_account_required",
            "balance_too_low",
            "have not enough telegram stars",
            "topic_closed",
            "topic_deleted",
            "topic_id_invalid",
            "message thread not found",
            "message_thread_not_found",
            "thread not found",
            "chat is not a forum",
            "the chat is not a forum",
            "invalid forum topic identifier",
            "unknown forum topic identifier",
        ),
    ),
    (
        Meaning.LEVEL_REFUSED,
        (
            "failed to get http url content",
            "wrong type of the web page content",
            "wrong http url specified",
            "wrong file identifier/http url specified",
            "invalid file http url specified",
            "url must be in utf-8",
            "url is too long",
            "can't upload file by url",
            "file generation failed",
            "file_generate_*",
            "webpage_*",
            "wc_convert_*",
            "external_url_invalid",
            "photo_*",
            "image_*",
            "video_*",
            "audio_*",
            "animation_*",
            "voice_*",
            "gif_*",
            "document_*",
            "media_*",
            "thumbnail_*",
            "file_*",
            "md5_checksum_invalid",
            "width of the photo is too big",
            "height of the photo is too big",
            "dimensions of the photo are too big",
            "size of the photo is too big",
            "wrong width",
            "wrong height",
            "photo has unsupported extension",
            "file of size*",
            "file is too big",
            "file must*",
            "file size has changed",
            "can't upload empty file",
            "can't get stat about the file",
            "can't find real file path",
            "failed to read file part",
            "can't open temporary file",
            "sending of internal database files is forbidden",
            "request entity too large",
            "payload too large",
            "not enough rights to send*",
            "chat_send_*",
            "user restricted receiving of*",
            "paid media can be sent only in*",
            "can't use the media of the specified type in the album",
            "unsupported input message content type",
            "unallowed message content",
            "invalid message content type",
            "invalid input media",
            "can't parse inputmedia",
            "can't parse input media json object",
            "animation must be*",
            "audio must be*",
            "document must be*",
            "photo must be*",
            "video must be*",
        ),
    ),
    (
        Meaning.CALL_INVALID,
        (
            "chat_id is empty",
            "chat identifier *",
            "there is no * in the request",
            "object expected as*",
            "expected an*",
            "can't parse*",
            'parameter "',
            "message text can't be edited without*",
            "can't edit message without new content",
            "input message content type must be*",
            "bot_method_invalid",
            "bot_command_*",
            "currency_*",
            "invoice_*",
            "labeledprice*",
            "payment_provider_*",
            "stars_*",
            "there must be at least one price",
            "input_*",
            "method is available*",
            "method not found",
            "not found",
            "file_id not specified",
            "unsupported *",
            "invalid * specified",
            'bot "',
            "send_as_peer_invalid",
            "schedule_*",
            "misdirected request",
        ),
    ),
)

_PREFIX = re.compile(r"(?:\[?error\]?: |bad request: |forbidden: |not found: )+")
#: an album's refusal quotes the refusal of one of its messages
_ALBUM = re.compile(r'failed to send message #\d+ with the error message "(.*)"', re.DOTALL)


def _compiled(pattern: str) -> re.Pattern[str]:
    body = "".join("[^'\"]*" if piece == "*" else re.escape(piece) for piece in re.split(r"(\*)", pattern))
    return re.compile(rf"{body}(?!\w)" if pattern[-1].isalnum() else body)


@cache
def _table() -> tuple[tuple[Meaning, re.Pattern[str]], ...]:
    """Return the compiled patterns. Commands that meet no refusal do not wait for 275 regular expressions."""
    return tuple((meaning, _compiled(pattern)) for meaning, patterns in PATTERNS for pattern in patterns)


def meaning_of(description: str) -> Meaning | None:
    """Return what the description of a refused call means; None if the table does not know it."""
    text = description.casefold().strip()
    text = text[found.end() :] if (found := _PREFIX.match(text)) else text
    if album := _ALBUM.match(text):
        return meaning_of(album[1])
    return next((meaning for meaning, pattern in _table() if pattern.match(text)), None)
