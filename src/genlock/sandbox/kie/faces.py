"""The paths of the simulated Kie.ai, and who speaks there."""

from genlock.providers.kie.families import Family
from genlock.sandbox.kie.face import Face
from genlock.sandbox.kie.market import Market
from genlock.sandbox.kie.older import Aleph, Flux, FourO, Runway, Veo
from genlock.sandbox.kie.suno import Cover, Lyrics, Midi, Suno, SunoTool


def _face(kind: type[Face], family: Family, operation: str, create: str, query: str) -> Face:
    return kind(family, operation, f"/api/v1/{create}", f"/api/v1/{query}")


_SONGS = ("extend", "upload-cover", "upload-extend", "add-instrumental", "add-vocals", "replace-section", "mashup")
FACES: tuple[Face, ...] = (
    _face(Market, Family.MARKET, "generate", "jobs/createTask", "jobs/recordInfo"),
    _face(Veo, Family.VEO, "generate", "veo/generate", "veo/record-info"),
    _face(Veo, Family.VEO, "extend", "veo/extend", "veo/record-info"),
    _face(Veo, Family.VEO, "4k", "veo/get-4k-video", "veo/record-info"),
    _face(Runway, Family.RUNWAY, "generate", "runway/generate", "runway/record-detail"),
    _face(Runway, Family.RUNWAY, "extend", "runway/extend", "runway/record-detail"),
    _face(Aleph, Family.ALEPH, "generate", "aleph/generate", "aleph/record-info"),
    _face(FourO, Family.GPT4O, "generate", "gpt4o-image/generate", "gpt4o-image/record-info"),
    _face(Flux, Family.FLUX_KONTEXT, "generate", "flux/kontext/generate", "flux/kontext/record-info"),
    _face(Suno, Family.SUNO, "generate", "generate", "generate/record-info"),
    *(_face(Suno, Family.SUNO, name, f"generate/{name}", "generate/record-info") for name in (*_SONGS, "sounds")),
    _face(Lyrics, Family.SUNO, "lyrics", "lyrics", "lyrics/record-info"),
    *(
        _face(SunoTool, Family.SUNO, name, f"{name}/generate", f"{name}/record-info")
        for name in ("wav", "mp4", "vocal-removal")
    ),
    _face(Midi, Family.SUNO, "midi", "midi/generate", "midi/record-info"),
    _face(Cover, Family.SUNO, "cover", "suno/cover/generate", "suno/cover/record-info"),
)
