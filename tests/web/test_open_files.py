"""The server raises the limit of open files for its connections."""

import resource

from genlock.web import server


def test_the_limit_of_open_files_leaves_room_for_every_connection() -> None:
    """With 1024 files, the unauthenticated connections would leave few for all other clients."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(1024, before[1]), before[1]))
        server.allow_open_files()
        assert resource.getrlimit(resource.RLIMIT_NOFILE) == (min(server.OPEN_FILES, before[1]), before[1])
        server.allow_open_files()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
