"""The tests trust one authority, also where the machine names its own list, and downloads get that list back."""

import os

import pytest

from tests.certificates import ONE_AUTHORITY, TRUSTED, trust_one_authority, with_all_authorities


@pytest.mark.parametrize("given", [{}, {TRUSTED: "/etc/ssl/cert.pem"}])
def test_one_authority_is_trusted_and_downloads_trust_what_the_machine_does(
    monkeypatch: pytest.MonkeyPatch, given: dict[str, str]
) -> None:
    monkeypatch.setattr(os, "environ", {"KEPT": "1", **given})

    for _ in range(2):  # the process of the tests, and one that it starts
        trust_one_authority()
        assert os.environ[TRUSTED] == str(ONE_AUTHORITY)
        assert with_all_authorities() == {"KEPT": "1", **given}
