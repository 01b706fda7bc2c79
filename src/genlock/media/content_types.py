"""The Content-Type under which a file is served: from its format, never from what another server claimed.

A format that a browser would run as a page, such as SVG, is served as plain bytes.
"""

from genlock.domain.media_format import Format

BINARY = "application/octet-stream"
_BY_SUFFIX = {
    ".jpg": "image/jpeg",
    ".png": "image/png",
    ".webp": "image/webp",
    ".avif": "image/avif",
    ".heic": "image/heic",
    ".bmp": "image/bmp",
    ".tiff": "image/tiff",
    ".gif": "image/gif",
    ".mp4": "video/mp4",
    ".mov": "video/quicktime",
    ".webm": "video/webm",
    ".avi": "video/x-msvideo",
    ".mpg": "video/mpeg",
    ".flv": "video/x-flv",
    ".m4a": "audio/mp4",
    ".mp3": "audio/mpeg",
    ".ogg": "audio/ogg",
    ".wav": "audio/wav",
    ".flac": "audio/flac",
    ".amr": "audio/amr",
    ".pdf": "application/pdf",
    ".zip": "application/zip",
    ".gz": "application/gzip",
    ".7z": "application/x-7z-compressed",
    ".glb": "model/gltf-binary",
    ".txt": "text/plain;charset=utf-8",
    ".srt": "application/x-subrip",
    ".vtt": "text/vtt",
}


def content_type_of(media_format: Format) -> str:
    """Return the Content-Type of a format, without spaces."""
    return _BY_SUFFIX.get(media_format.suffix, BINARY)
