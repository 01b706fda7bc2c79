"""All create and status paths of the Kie.ai simulator, with the family that serves them."""

from genlock.providers.kie.families import Family
from genlock.sandbox.kie.dedicated import Aleph, Flux, FourO, Runway, Veo
from genlock.sandbox.kie.endpoint import SimulatedEndpoint
from genlock.sandbox.kie.market import Market
from genlock.sandbox.kie.suno import Cover, Lyrics, Midi, Suno, SunoTool


def _endpoint(
    kind: type[SimulatedEndpoint], family: Family, operation: str, create: str, query: str
) -> SimulatedEndpoint:
    return kind(family, operation, f"/api/v1/{create}", f"/api/v1/{query}")


_SONGS = ("extend", "upload-cover", "upload-extend", "add-instrumental", "add-vocals", "replace-section", "mashup")
ENDPOINTS: tuple[SimulatedEndpoint, ...] = (
    _endpoint(Market, Family.MARKET, "generate", "jobs/createTask", "jobs/recordInfo"),
    _endpoint(Veo, Family.VEO, "generate", "veo/generate", "veo/record-info"),
    _endpoint(Veo, Family.VEO, "extend", "veo/extend", "veo/record-info"),
    _endpoint(Veo, Family.VEO, "4k", "veo/get-4k-video", "veo/record-info"),
    _endpoint(Runway, Family.RUNWAY, "generate", "runway/generate", "runway/record-detail"),
    _endpoint(Runway, Family.RUNWAY, "extend", "runway/extend", "runway/record-detail"),
    _endpoint(Aleph, Family.ALEPH, "generate", "aleph/generate", "aleph/record-info"),
    _endpoint(FourO, Family.GPT4O, "generate", "gpt4o-image/generate", "gpt4o-image/record-info"),
    _endpoint(Flux, Family.FLUX_KONTEXT, "generate", "flux/kontext/generate", "flux/kontext/record-info"),
    _endpoint(Suno, Family.SUNO, "generate", "generate", "generate/record-info"),
    *(_endpoint(Suno, Family.SUNO, name, f"generate/{name}", "generate/record-info") for name in (*_SONGS, "sounds")),
    _endpoint(Lyrics, Family.SUNO, "lyrics", "lyrics", "lyrics/record-info"),
    *(
        _endpoint(SunoTool, Family.SUNO, name, f"{name}/generate", f"{name}/record-info")
        for name in ("wav", "mp4", "vocal-removal")
    ),
    _endpoint(Midi, Family.SUNO, "midi", "midi/generate", "midi/record-info"),
    _endpoint(Cover, Family.SUNO, "cover", "suno/cover/generate", "suno/cover/record-info"),
)
