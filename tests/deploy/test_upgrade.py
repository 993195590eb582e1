"""Upgrades from the release before: its code runs on today's tables, and nothing is lost."""

from __future__ import annotations

import asyncio
import json
import os
import uuid
from contextlib import contextmanager
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

import httpx
import psycopg
import pytest

from tests import services
from tests.deploy.releases import previous_release
from tests.journeys.cluster import Cluster, ClusteredProduct
from tests.journeys.deployments.balancer import balanced
from tests.journeys.product import ROOT, Product
from uamp.client import Client

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]

CSV: Final = "name,amount\nAda,3\nBob,4\n"
CLIENTS: Final = int(os.environ.get("UPGRADE_CLIENTS", "20"))
"""How many clients ask all the time during the rolling upgrade."""
CONTRACTED: Final[frozenset[tuple[str, str]]] = frozenset()
"""Columns (table, name) that the release before no longer names (docs/development.md)."""
# A turn that found no server within this time is lost.
RECONNECT_SECONDS: Final = 180.0
COLUMNS: Final = """
import json
from django.db import connection
from django.apps import apps
tables = {}
with connection.cursor() as cursor:
    for table in connection.introspection.table_names(cursor):
        tables[table] = {
            column.name: [column.type_code, column.null_ok, column.default is not None]
            for column in connection.introspection.get_table_description(cursor, table)
        }
print(json.dumps(tables, default=str))
"""
MESSAGES: Final = """
import json
from chat_app.models import Message
rows = Message.objects.order_by("created_at", "pk")
print(json.dumps(list(rows.values_list("id", "chat_id", "content"))))
"""


@contextmanager
def database(vendor: str) -> Iterator[dict[str, str]]:
    """Yield the environment of a new, empty database."""
    if vendor == "sqlite":
        yield {}
        return
    address = services.postgres()
    if address is None:
        pytest.skip("no PostgreSQL: set TEST_DATABASE_URL or install postgresql")
    name = f"uamp_{uuid.uuid4().hex[:12]}"
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{name}"')
        try:
            yield {"DATABASE_URL": f"{address.rsplit('/', 1)[0]}/{name}"}
        finally:
            connection.execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')


def make_demo(product: Product) -> None:
    """Create the tables and the demo with the product's own code."""
    product.manage("migrate", "-v", "0")
    demo = json.loads(product.manage("demo", "--json"))
    product.people = {person["username"]: person for person in demo["users"]}
    product.chat_id = demo["chats"][0]["id"]


def columns(product: Product) -> dict[str, dict[str, list[Any]]]:
    """Return the tables: type, nullability and default of each column."""
    tables: dict[str, dict[str, list[Any]]] = json.loads(product.run(COLUMNS))
    return tables


def stored_messages(product: Product) -> list[list[str]]:
    """Return the id, the chat and the text of each message, in the order of writing."""
    rows: list[list[str]] = json.loads(product.run(MESSAGES))
    return rows


async def smoke(product: Product, folder: Path) -> None:
    """Sign in, ask, and have a worker run a tool."""
    alice = product.people["alice"]
    async with httpx.AsyncClient(base_url=product.url, trust_env=False, timeout=60) as browser:
        form = {"username": "alice", "password": alice["password"]}
        form["csrfmiddlewaretoken"] = (await browser.get("/login")).cookies["csrftoken"]
        origin = {"Referer": f"{product.url}/login"}
        signed_in = await browser.post("/login", data=form, headers=origin)
        assert signed_in.status_code == HTTPStatus.FOUND
        page = await browser.get(f"/chats/{product.chat_id}")
        assert page.status_code == HTTPStatus.OK
    table = folder / "sums.csv"
    table.write_text(CSV)
    async with Client(product.url, key=alice["api_key"]) as client:
        chat = await client.agent("echo")
        assert (await chat.ask("still here")).text == "still here"
        report = await client.agent("report")
        assert "mean 3.5" in (await report.ask("sum it up", files=[table])).text


@pytest.mark.parametrize("vendor", ["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
async def test_the_release_before_runs_on_the_new_tables(vendor: str, tmp_path: Path) -> None:
    with database(vendor) as environment:
        data_dir = tmp_path / "data"
        product = Product(data_dir, services.free_port(), environment, folder=previous_release())
        try:
            make_demo(product)
            before = columns(product)
            product.start()
            await smoke(product, tmp_path)
            messages = stored_messages(product)
            # Today's code updates the tables while the old code serves.
            product.folder = ROOT
            product.manage("migrate", "-v", "0")
            await smoke(product, tmp_path)
            product.stop()
            product.folder = previous_release()
            product.start()
            await smoke(product, tmp_path)
            product.stop()
            product.close()
            product.folder = ROOT
            product.start()
            await smoke(product, tmp_path)
            assert messages
            assert stored_messages(product)[: len(messages)] == messages
            after = columns(product)
            product.manage("audit_ledger")
            product.manage("audit_log")
        finally:
            product.close()
            product.stop()
    for table, all_existing in before.items():
        existing = {
            name: column for name, column in all_existing.items() if (table, name) not in CONTRACTED
        }
        assert existing.keys() <= after[table].keys(), table
        for name, (_, is_nullable, has_default) in after[table].items():
            # Otherwise the old code, which does not know the column, can no longer insert rows.
            assert name in existing or is_nullable or has_default, (table, name)
        for name, (type_code, is_nullable, _) in existing.items():
            assert after[table][name][0] == type_code, (table, name)
            assert after[table][name][1] or not is_nullable, (table, name)


@dataclass
class Asker:
    """A client that asks an agent one question after another, and keeps what it received."""

    product: Product
    number: int
    answers: list[str] = field(default_factory=list)
    chat_id: str = ""

    async def ask_until(self, url: str, stopped: asyncio.Event) -> None:
        """Ask until `stopped` is set, over one client that reconnects."""
        key = self.product.people["alice"]["api_key"]
        async with Client(url, key=key, reconnect_seconds=RECONNECT_SECONDS) as client:
            chat = await client.agent("echo")
            self.chat_id = chat.id
            while not stopped.is_set():
                question = self.question(len(self.answers))
                self.answers.append((await chat.ask(question)).text)
                await asyncio.sleep(0.5)

    def question(self, place: int) -> str:
        """Return the text of a question, which is that of its answer too."""
        return f"client {self.number} question {place}"

    async def check(self, client: Client) -> None:
        """Check that each question and each answer was shown once, and is stored once."""
        expected = [self.question(place) for place in range(len(self.answers))]
        assert self.answers == expected
        stored = [message.content async for message in client.history(self.chat_id)]
        assert stored == [text for question in expected for text in (question, question)]


@pytest.mark.redis
async def test_clients_notice_nothing_of_a_rolling_upgrade(redis_url: str, tmp_path: Path) -> None:
    with database("postgres") as environment:
        product = ClusteredProduct(
            tmp_path,
            0,
            {
                **environment,
                "REDIS_URL": redis_url,
                "REDIS_PREFIX": uuid.uuid4().hex,
                "SECRET_KEY": uuid.uuid4().hex * 2,
                "UAMP_CONNECTIONS_PER_USER": "1000",
                "UAMP_CONNECTIONS_PER_ADDRESS": "1000",
                "UAMP_EVENTS_PER_MINUTE": "1000000",
                "UAMP_EVENTS_BURST": "1000000",
                "UAMP_RESPONSES_PER_MINUTE": "1000000",
                "UAMP_RESPONSES_PER_PERSON": "1000",
                "UAMP_SESSIONS_PER_MINUTE": "1000000",
                "UAMP_REQUESTS_PER_MINUTE": "1000000",
                "UAMP_READS_PER_MINUTE": "1000000",
                "UAMP_WRITES_PER_MINUTE": "1000000",
            },
            folder=previous_release(),
        )
        cluster = Cluster(product)
        try:
            make_demo(product)
            product.start()
            cluster.start_worker()
            askers = [Asker(product, number) for number in range(CLIENTS)]
            stopped = asyncio.Event()
            async with balanced(cluster.ports) as port, asyncio.TaskGroup() as group:
                for asker in askers:
                    group.create_task(asker.ask_until(f"http://127.0.0.1:{port}", stopped))
                await asyncio.sleep(5)
                await asyncio.to_thread(upgrade, cluster)
                await asyncio.sleep(5)
                stopped.set()
            key = product.people["alice"]["api_key"]
            async with Client(f"http://127.0.0.1:{cluster.ports[1]}", key=key) as client:
                for asker in askers:
                    await asker.check(client)
            product.manage("audit_ledger")
            product.manage("audit_log")
        finally:
            product.close()
            for name in list(cluster.processes):
                cluster.end(name)


def upgrade(cluster: Cluster) -> None:
    """Update the tables, then replace one process after another by today's code."""
    cluster.product.folder = ROOT
    cluster.product.manage("migrate", "-v", "0")
    for number in range(len(cluster.ports)):
        cluster.end(f"server{number}")
        cluster.start_server(number)
    cluster.end("worker")
    cluster.start_worker()
