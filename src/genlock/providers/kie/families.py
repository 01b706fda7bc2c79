"""Kie.ai's interfaces: the endpoints that create and query the tasks of each family of models."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

#: Suno refuses an order without a callback URL. Without a public URL it gets this one, which reaches no host.
UNREACHABLE_URL = "https://callbacks.invalid/none"


class Family(StrEnum):
    """The interface of Kie.ai that runs a model, as a model's `family` names it in the catalog."""

    MARKET = ""  #: createTask, with an `input` object; the usual one
    VEO = "veo"  #: the older interfaces, with a flat body
    RUNWAY = "runway"
    ALEPH = "aleph"
    GPT4O = "4o"
    FLUX_KONTEXT = "flux-kontext"
    SUNO = "suno"


@dataclass(frozen=True, kw_only=True, slots=True)
class Route:
    create: str
    query: str
    #: the body is `{model, input}`; otherwise the input's fields are the body
    wrapped: bool = False
    #: the endpoint refuses a body without a callback URL
    needs_callback: bool = False

    def body(self, model: str, values: Mapping[str, Any], callback_url: str | None) -> dict[str, Any]:
        body: dict[str, Any] = {"model": model, "input": dict(values)} if self.wrapped else dict(values)
        if callback_url or self.needs_callback:
            body["callBackUrl"] = callback_url or UNREACHABLE_URL
        return body


def _song(operation: str) -> Route:
    place = "" if operation == "generate" else f"/{operation}"
    return Route(create=f"/api/v1/generate{place}", query="/api/v1/generate/record-info", needs_callback=True)


def _suno_tool(name: str) -> Route:
    return Route(create=f"/api/v1/{name}/generate", query=f"/api/v1/{name}/record-info", needs_callback=True)


_MARKET = Route(create="/api/v1/jobs/createTask", query="/api/v1/jobs/recordInfo", wrapped=True)
_VEO_QUERY = "/api/v1/veo/record-info"
_RUNWAY_QUERY = "/api/v1/runway/record-detail"
_SONGS = (
    "generate",
    "extend",
    "upload-cover",
    "upload-extend",
    "add-instrumental",
    "add-vocals",
    "replace-section",
    "mashup",
    "sounds",
)
#: by family and operation
ROUTES: Mapping[tuple[str, str], Route] = {
    (Family.MARKET, "generate"): _MARKET,
    (Family.VEO, "generate"): Route(create="/api/v1/veo/generate", query=_VEO_QUERY),
    (Family.VEO, "extend"): Route(create="/api/v1/veo/extend", query=_VEO_QUERY),
    (Family.VEO, "4k"): Route(create="/api/v1/veo/get-4k-video", query=_VEO_QUERY),
    (Family.RUNWAY, "generate"): Route(create="/api/v1/runway/generate", query=_RUNWAY_QUERY),
    (Family.RUNWAY, "extend"): Route(create="/api/v1/runway/extend", query=_RUNWAY_QUERY),
    (Family.ALEPH, "generate"): Route(create="/api/v1/aleph/generate", query="/api/v1/aleph/record-info"),
    (Family.GPT4O, "generate"): Route(create="/api/v1/gpt4o-image/generate", query="/api/v1/gpt4o-image/record-info"),
    (Family.FLUX_KONTEXT, "generate"): Route(
        create="/api/v1/flux/kontext/generate", query="/api/v1/flux/kontext/record-info"
    ),
    **{(Family.SUNO, operation): _song(operation) for operation in _SONGS},
    (Family.SUNO, "lyrics"): Route(create="/api/v1/lyrics", query="/api/v1/lyrics/record-info", needs_callback=True),
    (Family.SUNO, "wav"): _suno_tool("wav"),
    (Family.SUNO, "vocal-removal"): _suno_tool("vocal-removal"),
    (Family.SUNO, "mp4"): _suno_tool("mp4"),
    (Family.SUNO, "midi"): _suno_tool("midi"),
    (Family.SUNO, "cover"): _suno_tool("suno/cover"),
}
