"""Links as the real server reads them: in buttons and in formatted texts."""

import re
from ipaddress import AddressValueError, IPv6Address

#: schemes of Telegram's own links, which have no path of a web server
OWN_SCHEMES = ("tonsite", "tg", "ton")
PORT_MAX = 65_535
HOST_CHARACTER = r"[A-Za-z0-9.\-_!$,~*'();&+=]|%[0-9A-Fa-f]{2}|[^\x00-\x7f]"
_HOST = re.compile(f"(?:{HOST_CHARACTER})*")
_USER_INFO = re.compile(f"(?:{HOST_CHARACTER}|:)*")
_PARTS = re.compile(r"(?:(?P<scheme>[^:/?#@\[\]]*)://)?(?P<place>[^/?#]*)(?P<query>.*)", re.DOTALL)
_USER = re.compile(r"tg:(?://)?user/?\?(?P<query>[^#]*)", re.IGNORECASE)


class LinkRefused(ValueError):
    """The server does not accept the link; the text says why, in its words."""


def checked_link(link: str) -> str:
    """Return a link in the server's own form. Raises LinkRefused."""
    scheme = next((name for name in OWN_SCHEMES if link.lower().startswith(f"{name}:")), None)
    if scheme is not None:
        return _own_link(scheme, link[len(scheme) + 1 :].removeprefix("//"))
    protocol, user_info, host, port, query = split_url(link)
    if "." not in host and not host.startswith("["):
        raise LinkRefused("Wrong HTTP URL")
    return f"{protocol}://{user_info}{'@' if user_info else ''}{host}{f':{port}' if port else ''}{query}"


def accepted_link(link: str) -> str:
    """Return a link in the server's own form, or an empty text: in formatted texts, wrong links are left out."""
    try:
        return checked_link(link)
    except LinkRefused:
        return ""


def user_of(link: str) -> int | None:
    """Return the id of the user to whom a link such as `tg://user?id=5` leads."""
    found = _USER.match(link)
    values = dict(pair.partition("=")[::2] for pair in reversed(found["query"].lower().split("&"))) if found else {}
    return int(values["id"]) if values.get("id", "").isdecimal() else None


def own_query(link: str, host: str) -> dict[str, str] | None:
    """Return the parameters of Telegram's own link `tg://HOST?…`; None if it is another one."""
    found = re.fullmatch(rf"tg:(?://)?{host}/?\?([^#]*)(?:#.*)?", link, re.IGNORECASE | re.DOTALL)
    return dict(pair.partition("=")[::2] for pair in reversed(found[1].split("&"))) if found else None


def _own_link(scheme: str, rest: str) -> str:
    protocol, user_info, host, port, query = split_url(rest)
    if rest.lower().startswith("http://") or protocol == "https" or user_info or port or host.startswith("["):
        raise LinkRefused("Wrong tg URL" if scheme == "tg" else "Wrong ton URL")
    if not re.fullmatch(r"[A-Za-z0-9_.-]*" if scheme == "tonsite" else r"[A-Za-z0-9_-]*", host):
        raise LinkRefused("Unallowed characters in URL host")
    return f"{scheme}://{host}{query[1:] if query.startswith('/?') else query}"


def split_url(url: str) -> tuple[str, str, str, int, str]:
    """Return protocol, user info, host, port (0: none) and the rest of a URL. Raises LinkRefused."""
    found = _PARTS.fullmatch(url)
    assert found is not None
    protocol = "http" if found["scheme"] is None else found["scheme"].lower()
    if protocol not in {"http", "https"}:
        raise LinkRefused("Unsupported URL protocol")
    place, port = _without_port(found["place"])
    user_info, _, host = place.rpartition("@")
    if host.startswith("[") and host.endswith("]"):
        try:
            IPv6Address(host[1:-1])
        except AddressValueError:
            raise LinkRefused("Wrong IPv6 address specified in the URL") from None
        return protocol, user_info, host.lower(), port, _path(found["query"])
    if host in {"", "."}:
        raise LinkRefused("Host is invalid" if host else "URL host is empty")
    for part, allowed, name in ((host, _HOST, "host"), (user_info, _USER_INFO, "userinfo")):
        if (matched := allowed.match(part)) and matched.end() < len(part):
            wrong = "Wrong percent-encoded symbol" if part[matched.end()] == "%" else "Disallowed character"
            raise LinkRefused(f"{wrong} in URL {name}")
    return protocol, user_info, _lower(host), port, _path(found["query"])


def _without_port(place: str) -> tuple[str, int]:
    """Return user info and host, and the port."""
    last = max(place.rfind(character) for character in ":]@")
    if last <= 0 or place[last] != ":":
        return place, 0
    digits = place[last + 1 :]
    if not re.fullmatch(r"\d{1,10}", digits) or not 0 < int(digits) <= PORT_MAX:
        raise LinkRefused("Wrong port number specified in the URL")
    return place[:last], int(digits)


def _path(query: str) -> str:
    """Return what follows the host; the server writes control characters and spaces as percent codes."""
    query = query.rstrip(" \t\r\n\0\v") or "/"
    query = query if query.startswith("/") else f"/{query}"
    return re.sub(r"[\x00-\x20]", lambda found: f"%{ord(found[0]):02X}", query)


def _lower(host: str) -> str:
    """Return a host with its ASCII letters in small."""
    return re.sub("[A-Z]", lambda found: found[0].lower(), host)
