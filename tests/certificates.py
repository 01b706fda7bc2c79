"""One certificate of an authority, which the tests trust instead of all: none of their connections is encrypted."""

import os
from pathlib import Path

ONE_AUTHORITY = Path(__file__).with_name("one_authority.pem")
#: where OpenSSL, httpx and the clients of the providers look for the list of authorities
TRUSTED = "SSL_CERT_FILE"
#: the machine's own list, if it names one; test processes inherit this from the one that started them
OF_THE_MACHINE = "TESTS_MACHINE_SSL_CERT_FILE"


def trust_one_authority() -> None:
    """Make this process and the programs that it starts trust one authority."""
    given = os.environ.get(TRUSTED)
    if given and given != str(ONE_AUTHORITY):
        os.environ[OF_THE_MACHINE] = given
    os.environ[TRUSTED] = str(ONE_AUTHORITY)


def with_all_authorities() -> dict[str, str]:
    """Return the environment for a program that downloads from a registry."""
    environment = {name: value for name, value in os.environ.items() if name not in (TRUSTED, OF_THE_MACHINE)}
    given = os.environ.get(OF_THE_MACHINE)
    return {**environment, TRUSTED: given} if given else environment
