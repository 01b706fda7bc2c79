"""The size and the duration of a video are read from the index of an MPEG-4 file."""

import io
import struct
from tempfile import TemporaryFile

import av
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from genlock.media.mapped_file import mapped
from genlock.media.mp4 import VideoInfo, read_video_info
from tests.media.samples import short_video

FTYP = b"\0\0\0\x18ftyp"


def test_the_index_states_the_size_and_the_duration() -> None:
    assert read_video_info(short_video()) == VideoInfo(width=512, height=512, seconds=2)


def test_a_file_on_disk_is_read_where_it_is() -> None:
    with TemporaryFile() as file:
        file.write(short_video())
        file.seek(0)
        with mapped(file) as content:
            assert read_video_info(content) == VideoInfo(width=512, height=512, seconds=2)
        assert file.tell() == 0


def test_an_empty_file_has_no_size() -> None:
    with TemporaryFile() as file, mapped(file) as content:
        assert read_video_info(content) is None


def test_an_index_at_the_end_of_the_file_is_found() -> None:
    file = io.BytesIO()
    with av.open(file, "w", format="mp4") as out:
        stream = out.add_stream("libx264", rate=10)
        stream.width, stream.height, stream.pix_fmt = 320, 180, "yuv420p"
        for _ in range(30):
            frame = av.VideoFrame.from_image(Image.new("RGB", (320, 180)))  # type: ignore[no-untyped-call]
            out.mux(stream.encode(frame))
        out.mux(stream.encode(None))
    assert read_video_info(file.getvalue()) == VideoInfo(width=320, height=180, seconds=3)


@given(st.binary(max_size=200))
def test_a_damaged_index_never_raises(content: bytes) -> None:
    box = struct.pack(">I4s", len(content) + 8, b"moov") + content
    read_video_info(FTYP + b"isom" + b"\0" * 12 + box)
    read_video_info(box)
