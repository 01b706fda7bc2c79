"""The installation itself: what the page shows, and that it never shows a secret."""

import json
from pathlib import Path
from typing import Any

import pytest

from genlock.app.installation import effective_settings, without_password
from genlock.app.plugins import find_plugins
from genlock.dashboard.installation import SettingSource
from genlock.domain.job_event import EventRow
from genlock.domain.operator import OperatorRole
from genlock.engine.retention import KEEP_SECONDS, LAST_PRUNE
from genlock.i18n.translator import translator
from genlock.settings import ServiceSettings
from tests.dashboard.world import TOKEN, DashboardWorld, running_dashboard
from tests.databases import new_sqlite

PASSWORD = "s3cr3t-pass/word"
SECRETS: dict[str, Any] = {
    "telegram_token": "123456:AAsecretsecretsecret",
    "kie_api_key": "kie-secret-key",
    "kie_webhook_key": "whsec-very-secret",
    "metrics_token": "metrics-zq",
    "fal_key": "fal-secret-key",
    "fal_admin_key": "fal-secret-admin-key",
    "replicate_token": "replicate-secret",
    "sealing_keys": "a-key-that-seals-webhooks,another-key-that-only-opens",
    "media_url": "s3://access:very-secret@storage.example/bucket",
}


async def test_the_state_names_instances_roles_migrations_and_retention(dashboard: DashboardWorld) -> None:
    store = dashboard.store
    await store.heartbeat("instance-one", 100.0)
    await store.describe_instance("instance-one", "9.8.7")
    await store.take_role("active", "instance-one", 60.0)
    await store.kv_put(LAST_PRUNE, json.dumps({"updates": 1204}))

    text = (await (await dashboard.log_in()).get("/system")).text

    for part in ("instance-one", "9.8.7", "leader", "0001_schema", "SQLite 3.", "1,204", "7 days", "1 day<"):
        assert part in text, part


async def test_an_installation_without_any_heartbeat_is_shown(dashboard: DashboardWorld) -> None:
    text = (await (await dashboard.log_in()).get("/system")).text
    assert "No instance has sent a heartbeat yet." in text
    assert "deleted any old rows yet." in text


def test_everything_that_is_pruned_has_a_name() -> None:
    for language in ("en", "ru"):
        texts = translator(language)
        assert [table for table in KEEP_SECONDS if f"dashboard.system.table.{table}" not in texts] == []


# settings


async def test_no_page_shows_a_character_of_a_secret(tmp_path: Path) -> None:
    async with running_dashboard(f"sqlite:///{new_sqlite(tmp_path)}", **SECRETS) as dashboard:
        client = await dashboard.log_in()
        for path in ("/system", "/system/settings", "/system/operators", "/system/doctor", "/system/log", "/audit"):
            text = (await client.get(path)).text
            for secret in (*SECRETS.values(), TOKEN):
                assert secret not in text, (path, secret)
        settings = (await client.get("/system/settings")).text
    assert settings.count("secret, set") == 10
    assert settings.count("secret, not set") == 0


def test_each_setting_is_shown_with_its_source(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("GENLOCK_MARKUP=3.5\nGENLOCK_PORT=9000\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GENLOCK_TELEGRAM_TOKEN", SECRETS["telegram_token"])
    monkeypatch.setenv("KIE_API_KEY", SECRETS["kie_api_key"])
    monkeypatch.setenv("GENLOCK_FAL_ADMIN_KEY", SECRETS["fal_admin_key"])  # although fal is not configured
    monkeypatch.setenv("GENLOCK_PORT", "9001")
    monkeypatch.setenv("DATABASE_URL", f"postgresql://bot:{PASSWORD.replace('/', '%2F')}@db.example:5432/bot")

    settings = ServiceSettings(free_per_day=3)  # type: ignore[call-arg] # the others are in the environment
    shown = {setting.name: setting for setting in effective_settings(settings, find_plugins())}

    def source(name: str) -> SettingSource:
        return shown[f"GENLOCK_{name}"].source

    assert source("PORT") is SettingSource.ENVIRONMENT
    assert source("KIE_API_KEY") is SettingSource.ENVIRONMENT
    assert source("MARKUP") is SettingSource.ENV_FILE
    assert source("HOST") is SettingSource.DEFAULT
    assert source("FREE_PER_DAY") is SettingSource.PROGRAM
    assert shown["GENLOCK_FAL_ADMIN_KEY"].is_set
    assert (shown["GENLOCK_FAL_KEY"].is_set, source("FAL_KEY")) == (False, SettingSource.DEFAULT)
    assert (shown["GENLOCK_FAL_API_URL"].text, source("FAL_API_URL")) == ("https://queue.fal.run", "default")
    assert not any(secret in str(shown) for secret in SECRETS.values())
    assert shown["GENLOCK_PORT"].text == "9001"
    assert shown["GENLOCK_DATABASE_URL"].text == "postgresql://bot:•••@db.example:5432/bot"
    assert (shown["GENLOCK_TELEGRAM_TOKEN"].text, shown["GENLOCK_TELEGRAM_TOKEN"].is_set) == ("", True)
    assert (shown["GENLOCK_METRICS_TOKEN"].is_secret, shown["GENLOCK_METRICS_TOKEN"].is_set) == (True, False)


def test_a_database_url_is_shown_without_its_password() -> None:
    urls = {
        "sqlite:////srv/genlock.db": "sqlite:////srv/genlock.db",
        "postgresql://bot:pw@db/bot": "postgresql://bot:•••@db/bot",
        "postgres://bot@db:5433/bot?sslmode=require": "postgres://bot@db:5433/bot?sslmode=require",
        "postgresql://db/bot?password=pw&sslpassword=pw2": "postgresql://db/bot?password=•••&sslpassword=•••",
        "postgresql://bot:a@b:c@db/bot": "postgresql://bot:•••@db/bot",
        "postgresql://bot:pw@[::1/bot": "postgresql://…",
    }
    for url, expected in urls.items():
        assert without_password(url) == expected


async def test_settings_are_for_owners_only(dashboard: DashboardWorld) -> None:
    for role in (OperatorRole.SUPPORT, OperatorRole.VIEWER):
        client = await dashboard.log_in(role)
        assert (await client.get("/system/settings")).status == 403
        text = (await client.get("/system")).text
        assert "/dashboard/system/settings" not in text
        assert "/dashboard/system/doctor" not in text


# the log of a correlation id


async def test_the_events_of_a_correlation_id_are_shown_newest_first(dashboard: DashboardWorld) -> None:
    events = [[2000, "JOB_CREATED", {"job": 12}], [10, "DELIVER_OK", {"reason": "<b>a fox</b>"}]]
    row = EventRow(correlation_id="c0ffee", number=1, events=json.dumps(events))
    await dashboard.store.add_job_events("instance-one", [row])

    text = (await (await dashboard.log_in()).get("/system/log?correlation_id=c0ffee")).text

    assert text.index("DELIVER_OK") < text.index("JOB_CREATED")
    assert "&lt;b&gt;a fox&lt;/b&gt;" in text
    nothing = (await (await dashboard.log_in()).get("/system/log?correlation_id=other")).text
    assert "No events with this correlation ID" in nothing


async def test_an_operator_who_may_not_see_prompts_sees_no_fields(tmp_path: Path) -> None:
    async with running_dashboard(f"sqlite:///{new_sqlite(tmp_path)}", viewers_see_prompts=False) as dashboard:
        row = EventRow(correlation_id="c0ffee", number=1, events='[[1, "DELIVER_OK", {"reason": "a fox"}]]')
        await dashboard.store.add_job_events("instance-one", [row])
        text = (await (await dashboard.log_in(OperatorRole.VIEWER)).get("/system/log?correlation_id=c0ffee")).text
    assert "DELIVER_OK" in text
    assert "a fox" not in text


async def test_what_cannot_be_a_correlation_id_is_said_so(tmp_path: Path) -> None:
    async with running_dashboard(f"sqlite:///{new_sqlite(tmp_path)}", keep_events_days=0) as dashboard:
        client = await dashboard.log_in()
        for wrong in ("x" * 101, "%01%02"):
            assert "a correlation ID: copy it" in (await client.get(f"/system/log?correlation_id={wrong}")).text
        assert "GENLOCK_KEEP_EVENTS_DAYS is 0" in (await client.get("/system/log")).text


async def test_a_provider_that_is_left_alone_is_shown_with_its_reason_and_can_be_used_again(
    dashboard: DashboardWorld,
) -> None:
    store = dashboard.store
    await store.count_failure("painter", "", 1, "no_provider_credits")
    await store.count_failure("painter", "<b>one</b>", 5, "provider_failed")
    owner = await dashboard.log_in()

    text = (await owner.get("/system")).text
    for part in ("painter", "no_provider_credits", "paused until", "&lt;b&gt;one&lt;/b&gt;", "in use"):
        assert part in text, part
    await owner.post("/system/providers/reset", {"provider": "painter", "model": ""})
    await owner.post("/system/providers/reset", {"provider": "painter", "model": ""})

    assert [breaker.model for breaker in await store.breakers()] == ["<b>one</b>"]
    lines = [line for line in await store.audit(10) if line.action == "reset_provider"]
    assert [line.subject for line in lines] == ["provider painter"]
