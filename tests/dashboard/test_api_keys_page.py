"""Keys of API clients in the dashboard: made once, shown once, revoked for good."""

import re
from typing import Any

from genlock.domain.api_key import ApiScope, hash_api_secret, is_well_formed
from genlock.domain.operator import OperatorRole
from tests.dashboard.world import DashboardWorld

PATH = "/system/api-keys"
FORM: dict[str, Any] = {"account": "shop", "name": "the shop's own key", "scope_order": "1", "scope_read": "1"}


def secrets_in(text: str) -> list[str]:
    return [word for word in re.findall(r"glk_\w+", text) if is_well_formed(word)]


async def test_a_new_key_is_shown_once_and_works(dashboard: DashboardWorld) -> None:
    owner = await dashboard.log_in()
    made = await owner.post(PATH, {**FORM, "spend_limit": "12,5", "request_key": "form"})

    [secret] = secrets_in(made.text)
    key = await dashboard.store.api_key_by_secret(hash_api_secret(secret))
    assert key is not None
    assert (key.scopes, key.spend_limit) == (frozenset({ApiScope.ORDER, ApiScope.READ}), 12_500)
    assert key.name == "the shop's own key"
    account = await dashboard.store.account(key.account_id)
    assert (account.channel, account.external_id) == ("api", "shop")
    page = await owner.get(PATH)
    assert secrets_in(page.text) == []
    assert key.shown in page.text
    assert "created an API key" in (await owner.get("/audit")).text
    assert (await owner.get(f"/users/{key.account_id}")).status == 200

    again = await owner.follow(PATH, {**FORM, "request_key": "form"})
    assert "was already created" in again.text
    assert len(await dashboard.store.api_keys(None, before=None, limit=10)) == 1


async def test_the_page_of_an_api_client_has_its_name_and_speaks_of_no_chat(dashboard: DashboardWorld) -> None:
    owner = await dashboard.log_in()
    account_id = await dashboard.store.ensure_account("api", "", "shop")
    page = (await owner.get(f"/users/{account_id}")).text
    assert "<h1><bdi>shop</bdi></h1>" in page
    assert "API client" in page
    for wrong in ("No name", "Telegram ID", "never wrote"):
        assert wrong not in page, wrong
    assert ">shop</bdi></a>" in (await owner.get("/users")).text
    limits = page.split('<h2 id="limits"')[1].split("</section>")[0]
    assert "0 of 1,000" in limits, "GENLOCK_API_RUNNING_MAX, not the limit of a chat"
    assert "last minute" not in limits
    assert "last hour" not in limits


async def test_a_key_is_revoked_once(dashboard: DashboardWorld) -> None:
    owner = await dashboard.log_in()
    [secret] = secrets_in((await owner.post(PATH, FORM)).text)
    [key] = await dashboard.store.api_keys(None, before=None, limit=10)

    assert "is revoked" in (await owner.follow(f"{PATH}/{key.id}/revoke")).text
    assert await dashboard.store.api_key_by_secret(hash_api_secret(secret)) is None
    assert "has already been revoked" in (await owner.follow(f"{PATH}/{key.id}/revoke")).text


async def test_wrong_forms_are_explained_and_make_no_key(dashboard: DashboardWorld) -> None:
    owner = await dashboard.log_in()
    for changes, words in (
        ({"account": "99"}, "no account with this number"),
        ({"account": "two words"}, "no account with this number"),
        ({"account": ""}, "no account with this number"),
        ({"account": "<b>"}, "no account with this number"),
        ({"spend_limit": "much"}, "must be a number of credits"),
        ({"name": "x" * 61}, "too long"),
        ({"scope_order": "", "scope_read": ""}, "at least one thing"),
    ):
        answer = await owner.post(PATH, {**FORM, **changes})
        assert answer.status == 422, changes
        assert words in answer.text.replace("&#39;", "'"), changes
    assert await dashboard.store.api_keys(None, before=None, limit=10) == []


async def test_only_owners_see_and_make_keys(dashboard: DashboardWorld) -> None:
    for role in (OperatorRole.SUPPORT, OperatorRole.VIEWER):
        client = await dashboard.log_in(role)
        assert (await client.get(PATH)).status == 403
        assert (await client.post(PATH, FORM)).status == 403
        assert "api-keys" not in (await client.get("/system")).text
    assert await dashboard.store.api_keys(None, before=None, limit=10) == []
