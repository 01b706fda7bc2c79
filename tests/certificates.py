"""One certificate of an authority, which the tests trust instead of all: none of their connections is encrypted."""

import os
from pathlib import Path

ONE_AUTHORITY = Path(__file__).with_name("one_authority.pem")


def with_all_authorities() -> dict[str, str]:
    """Return the environment for a program that downloads from a registry."""
    ours = os.environ.get("SSL_CERT_FILE") == str(ONE_AUTHORITY)
    return {name: value for name, value in os.environ.items() if not (ours and name == "SSL_CERT_FILE")}
