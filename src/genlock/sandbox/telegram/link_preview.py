"""Link previews: which options of a text the bot gets back."""

from typing import Any

from genlock.sandbox.telegram.api_call import CallArguments

Entity = dict[str, Any]
SIZES = ("prefer_small_media", "prefer_large_media")


def link_preview(arguments: CallArguments, text: str, entities: list[Entity]) -> dict[str, Any]:
    """Return the field `link_preview_options` of a text that has a link, or none for other texts."""
    options = arguments.object("link_preview_options", "link preview options")
    url = str(options.get("url") or _first_url(text, entities))
    if not url:
        return {}
    if options.get("is_disabled") or arguments.flag("disable_web_page_preview"):
        return {"link_preview_options": {"is_disabled": True}}
    shown: dict[str, Any] = {"url": url}
    if options.get("url"):
        shown |= {name: True for name in SIZES if options.get(name)}
    if options.get("show_above_text"):
        shown["show_above_text"] = True
    return {"link_preview_options": shown}


def _first_url(text: str, entities: list[Entity]) -> str:
    for entity in entities:
        if entity["type"] == "text_link":
            return str(entity["url"])
        if entity["type"] == "url":
            units = text.encode("utf-16-le")
            return units[entity["offset"] * 2 : (entity["offset"] + entity["length"]) * 2].decode("utf-16-le")
    return ""
