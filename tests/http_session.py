"""A client for the servers of the tests."""

import aiohttp


def new_session() -> aiohttp.ClientSession:
    """A client that uses no connection again that the server is about to close, which it does after five seconds."""
    return aiohttp.ClientSession(connector=aiohttp.TCPConnector(keepalive_timeout=1.0))
