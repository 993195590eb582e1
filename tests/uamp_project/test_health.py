"""/healthz and /readyz on the real server, and what makes it not ready."""

import asyncio
from pathlib import Path

import httpx
import pytest
from channels.layers import channel_layers, get_channel_layer
from django.db import connection
from django.db.migrations.recorder import MigrationRecorder
from pytest_django import Settings

from sessions_app import lifespan
from tests import services
from tests.conftest import ServerAddress
from uamp_project import health


def test_a_server_that_has_everything_is_ready(server: ServerAddress) -> None:
    assert httpx.get(f"{server.http}/healthz").json() == {"status": "alive"}
    ready = httpx.get(f"{server.http}/readyz")

    assert (ready.status_code, ready.json()) == (200, {"status": "ready"})


def test_a_server_is_not_ready_while_another_part_of_it_is_not(
    server: ServerAddress, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The ports for peers of `serve`."""
    monkeypatch.setattr(health, "_parts", {})
    states = [False, True]
    health.also_requires("peers", lambda: states.pop(0))
    answers = [httpx.get(f"{server.http}/readyz") for _ in range(2)]
    assert [answer.status_code for answer in answers] == [503, 200]
    assert answers[0].json()["reasons"] == ["peers"]


def test_a_probe_by_address_is_answered(server: ServerAddress) -> None:
    """An orchestrator asks the address of a container, which is not in ALLOWED_HOSTS."""
    host = {"Host": "10.1.2.3:8000"}
    for path in ("/healthz", "/readyz"):
        assert httpx.get(f"{server.http}{path}", headers=host).status_code == 200
        assert httpx.post(f"{server.http}{path}", headers=host).status_code == 405
    assert httpx.get(f"{server.http}/login", headers=host).status_code == 400


def test_a_probe_leaves_no_channel_behind(server: ServerAddress) -> None:
    httpx.get(f"{server.http}/readyz")
    before = get_channel_layer().channel_count
    for _ in range(3):
        httpx.get(f"{server.http}/readyz")

    assert get_channel_layer().channel_count == before


def test_many_probes_ask_once(server: ServerAddress, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every client may ask: a flood of questions must cost nothing."""
    # The first request of a server starts its process, which makes channels of its own.
    httpx.get(f"{server.http}/healthz")
    plans: list[None] = []
    messages: list[None] = []
    plan, new_channel = health.missing_migrations, get_channel_layer().new_channel

    def counted_plan() -> list[str]:
        plans.append(None)
        return plan()

    async def counted_channel() -> str:
        messages.append(None)
        name: str = await new_channel()
        return name

    monkeypatch.setattr(health, "missing_migrations", counted_plan)
    monkeypatch.setattr(health, "ANSWER_SECONDS", 60)
    monkeypatch.setattr(get_channel_layer(), "new_channel", counted_channel)
    with httpx.Client(base_url=server.http, trust_env=False) as web:
        assert {web.get("/readyz").status_code for _ in range(5)} == {200}
        assert (len(plans), len(messages)) == (1, 1)
        # Migrations that were applied stay so, the rest is asked again.
        monkeypatch.setattr(health, "ANSWER_SECONDS", 0)
        assert {web.get("/readyz").status_code for _ in range(5)} == {200}
        assert (len(plans), len(messages)) == (1, 6)


def test_a_missing_migration_is_reported(server: ServerAddress) -> None:
    last = MigrationRecorder.Migration.objects.filter(app="sessions_app").latest("name")
    name, applied = last.name, last.applied
    last.delete()
    try:
        ready = httpx.get(f"{server.http}/readyz")
        alive = httpx.get(f"{server.http}/healthz")
    finally:
        MigrationRecorder.Migration.objects.create(app="sessions_app", name=name, applied=applied)

    assert (ready.status_code, ready.json()["reasons"]) == (503, ["migrations"])
    assert alive.status_code == 200


def test_an_unresponsive_layer_is_reported(
    server: ServerAddress, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    class DeafLayer:
        async def new_channel(self) -> str:
            await asyncio.sleep(60)
            return ""

    # Long enough for the other probes on a loaded machine.
    monkeypatch.setattr(health, "PROBE_SECONDS", 8)
    previous_layer = channel_layers.set("default", DeafLayer())
    try:
        ready = httpx.get(f"{server.http}/readyz", timeout=60)
    finally:
        channel_layers.set("default", previous_layer)

    assert (ready.status_code, ready.json()["reasons"]) == (503, ["layer"])


@pytest.mark.redis
def test_a_process_is_ready_while_one_of_several_layer_servers_answers(
    server: ServerAddress,
    settings: Settings,
    redis_url: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(health, "ANSWER_SECONDS", 0)
    away = f"redis://127.0.0.1:{services.free_port()}/0"
    settings.REDIS_URL, settings.REDIS_LAYER_URLS = redis_url, [redis_url, away]
    assert httpx.get(f"{server.http}/readyz", timeout=60).status_code == 200
    assert "1 of 2 servers of the channel layer do not answer" in caplog.text
    settings.REDIS_LAYER_URLS = [away, away]
    ready = httpx.get(f"{server.http}/readyz", timeout=60)

    assert (ready.status_code, ready.json()["reasons"]) == (503, ["layer"])


def test_an_unwritable_media_folder_is_reported(
    server: ServerAddress, settings: Settings, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    settings.MEDIA_ROOT = tmp_path / "file" / "folder"
    ready = httpx.get(f"{server.http}/readyz")

    assert (ready.status_code, ready.json()["reasons"]) == (503, ["files"])


def test_a_database_that_refuses_writes_is_reported(server: ServerAddress) -> None:
    with connection.cursor() as cursor:
        if connection.vendor == "sqlite":
            cursor.execute(
                "CREATE TRIGGER full_disk BEFORE UPDATE ON django_migrations"
                " BEGIN SELECT RAISE(ABORT, 'database or disk is full'); END"
            )
        else:
            cursor.execute(
                "CREATE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS"
                " $$ BEGIN RAISE EXCEPTION 'could not extend file'; END $$"
            )
            cursor.execute(
                "CREATE TRIGGER full_disk BEFORE UPDATE ON django_migrations"
                " FOR EACH ROW EXECUTE FUNCTION full_disk()"
            )
    try:
        ready = httpx.get(f"{server.http}/readyz")
    finally:
        with connection.cursor() as cursor:
            if connection.vendor == "sqlite":
                cursor.execute("DROP TRIGGER full_disk")
            else:
                cursor.execute("DROP FUNCTION full_disk CASCADE")

    assert (ready.status_code, ready.json()["reasons"]) == (503, ["database"])


@pytest.mark.django_db(transaction=True)
async def test_a_draining_process_is_not_ready(database_threads: None) -> None:
    process = lifespan.start()
    process.draining = True
    assert not lifespan.is_ready()
    await lifespan.shutdown()
