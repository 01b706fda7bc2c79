"""The types of settings: how the text of a variable is read and checked. No message repeats the text."""

import re
from pathlib import Path
from typing import Annotated, Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import AfterValidator, BeforeValidator, SecretStr
from pydantic_settings import NoDecode

_TOKEN = re.compile(r"[0-9]{1,20}:[A-Za-z0-9_-]+")
_CHAT = re.compile(r"-?\d{1,20}(?::\d{1,18})?", re.ASCII)
_HOST = re.compile(r"[^\s:/]+:[0-9]{1,5}")
_SCHEMES = ("sqlite:///", "postgresql://", "postgres://")
_SEALING_KEY_LENGTH = 20
#: percent; more is most likely a typing error
_BONUS_MAX = 100


def words(text: str) -> list[str]:
    return [word for word in re.split(r"[\s,]+", text) if word]


def _bot_token(token: SecretStr) -> SecretStr:
    if not _TOKEN.fullmatch(token.get_secret_value()):
        raise ValueError("is not a bot's token, which looks like 123456789:AA…; copy it from @BotFather again")
    return token


def _database_url(url: str) -> str:
    if not url.startswith(_SCHEMES):
        scheme = url.partition(":")[0][:20]
        raise ValueError(f"must begin with sqlite:/// or postgresql://, not {scheme!r}")
    return url


def _media_url(url: SecretStr) -> SecretStr:
    if not url.get_secret_value().startswith(("file:/", "s3://")):
        raise ValueError("must begin with file:/// or s3://")
    return url


def _sealing_keys(keys: SecretStr) -> SecretStr:
    if any(len(key) < _SEALING_KEY_LENGTH for key in words(keys.get_secret_value())):
        raise ValueError(f"needs keys of at least {_SEALING_KEY_LENGTH} characters, such as of openssl rand -hex 32")
    return keys


def _time_zone(name: str) -> str:
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ValueError("is not a time zone, such as Europe/Berlin or UTC") from None
    return name


def _report_chat(chat: str) -> str:
    if chat and not _CHAT.fullmatch(chat):
        raise ValueError("must be the id of a chat, or of a chat and a topic, such as -1001234567890:12")
    return chat


def _picture(picture: str) -> str:
    if picture not in ("packaged", "off") and not Path(picture).is_file():
        raise ValueError("must be `packaged`, `off`, or the path of a file that exists")
    return picture


def _private_hosts(hosts: tuple[str, ...]) -> tuple[str, ...]:
    if any(not _HOST.fullmatch(host) for host in hosts):
        raise ValueError("must be host:port, separated by commas, such as 127.0.0.1:8082")
    return hosts


def _split_list(value: Any) -> Any:
    return [word for word in re.split(r"[\s,;]+", value.strip("[]")) if word] if isinstance(value, str) else value


def _telegram_ids(value: Any) -> Any:
    ids = _split_list(value)
    if isinstance(value, str) and not all(re.fullmatch(r"[0-9]{1,20}", one) for one in ids):
        raise ValueError(
            "must be Telegram ids, separated by commas; an id is a number such as 123456789, "
            "and a bot such as @userinfobot tells you yours"
        )
    return ids


def _split_pairs(text: str) -> list[list[str]]:
    return [word.split(":") for word in re.split(r"[\s,;]+", text) if word]


def _star_packages(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    pairs = _split_pairs(value)
    if any(len(pair) != 2 or not all(word.isdigit() and int(word) for word in pair) for pair in pairs):  # noqa: PLR2004
        raise ValueError("must be STARS:CREDITS, separated by commas, such as 100:130,500:650")
    return {int(stars): int(credits_) for stars, credits_ in pairs}


def _star_bonus(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    pairs = _split_pairs(value)
    if any(len(pair) != 2 or not all(word.isdecimal() and len(word) <= 9 for word in pair) for pair in pairs):  # noqa: PLR2004
        raise ValueError("must be STARS:PERCENT, separated by commas, such as 500:5,1000:10")
    bonus = {int(stars): int(percent) for stars, percent in pairs}
    if any(percent > _BONUS_MAX for percent in bonus.values()):
        raise ValueError(f"gives more than {_BONUS_MAX} percent")
    return bonus


BotToken = Annotated[SecretStr, AfterValidator(_bot_token)]
DatabaseUrl = Annotated[str, AfterValidator(_database_url)]
MediaUrl = Annotated[SecretStr, AfterValidator(_media_url)]
SealingKeys = Annotated[SecretStr, AfterValidator(_sealing_keys)]
TimeZone = Annotated[str, AfterValidator(_time_zone)]
ReportChat = Annotated[str, AfterValidator(_report_chat)]
Picture = Annotated[str, AfterValidator(_picture)]
TelegramIds = Annotated[tuple[int, ...], NoDecode, BeforeValidator(_telegram_ids)]
PrivateHosts = Annotated[tuple[str, ...], NoDecode, BeforeValidator(_split_list), AfterValidator(_private_hosts)]
StarPackages = Annotated[dict[int, int], NoDecode, BeforeValidator(_star_packages)]
StarBonus = Annotated[dict[int, int], NoDecode, BeforeValidator(_star_bonus)]
