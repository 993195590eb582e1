"""Two servers with people, agents and a ledger each; an agent of each is in a chat of the other.

The chat's server calls the agent at its address.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from tests.client import UampClient, text_of, wait_until
from tests.journeys.product import running_product
from tests.threads import thread_pool

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.client import Frame
    from tests.journeys.product import Product

# The price of an agent on its own server, and what the other server charges for it.
PRICE, RESOLD = "0.02", "0.25"
WALLET = {"scheme": "balance", "network": "uamp"}
WORDS = "one two three four five six"
SCOPES = ["chats:read", "messages:write", "agents:read", "payments:write"]
LOCAL_AGENT = """
from agents_app.models import Agent
options = {{"script": "echo", "delay": 0.05}}
price = {{"per_answer": {price!r}}}
Agent.objects.create(name={name!r}, is_public=True, options=options, pricing=price)
"""
LEDGER = """
import json
from agents_app.models import Agent
from payments_app import selectors, services
from payments_app.models import Hold
agent = Agent.objects.get(name={agent!r})
earned = selectors.balance(services.account_of_agent(agent.pk).id).posted
held = Hold.objects.filter(state="active").count()
print(json.dumps([str(earned), held, services.audit().clean]))
"""
ANSWERS = """
import json
from sessions_app.models import Response
rows = Response.objects.filter(agent__name={agent!r}).order_by("created_at")
print(json.dumps([[row.status, row.text] for row in rows]))
"""


@dataclass(frozen=True)
class Neighbour:
    """A server; `local` is its own agent, `visitor` the one of the other server."""

    product: Product
    local: str
    visitor: str

    def ledger(self, agent: str) -> list[object]:
        """Return an agent's earnings, the number of open holds, and whether the audit is clean."""
        rows: list[object] = json.loads(self.product.run(LEDGER.format(agent=agent)))
        return rows

    def answers(self, agent: str) -> list[list[str]]:
        """Return the states and texts of an agent's answers, oldest first."""
        rows: list[list[str]] = json.loads(self.product.run(ANSWERS.format(agent=agent)))
        return rows

    def balance(self, username: str) -> str:
        """Return the amount that a person can spend, in dollars."""
        with self.product.api(username) as client:
            answer = client.get("/api/payments/balance").raise_for_status().json()
        return str(answer["available"])

    def socket(self, username: str) -> UampClient:
        """Return a person's session in the shared chat."""
        headers = {"Authorization": f"Bearer {self.product.people[username]['api_key']}"}
        client = UampClient(f"ws{self.product.url.removeprefix('http')}/uamp", headers=headers)
        client.create_session(chat=self.product.chat_id)
        return client


@pytest.fixture(scope="module")
def neighbours(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Neighbour]]:
    """Run two servers, each with the other one's agent in its shared chat."""
    allowed = {"UAMP_REMOTE_ALLOW_HOSTS": "127.0.0.1:*"}
    with (
        running_product(tmp_path_factory.mktemp("north"), has_workers=False, **allowed) as north,
        running_product(tmp_path_factory.mktemp("south"), has_workers=False, **allowed) as south,
    ):
        for here, local in ((north, "northern"), (south, "southern")):
            here.run(LOCAL_AGENT.format(name=local, price=PRICE))
        add_visitor(north, "southern", of=south)
        add_visitor(south, "northern", of=north)
        yield [
            Neighbour(north, "northern", "southern"),
            Neighbour(south, "southern", "northern"),
        ]


def add_visitor(here: Product, name: str, *, of: Product) -> None:
    """Discover an agent of another server, save it with bob's key there, and add it to the chat."""
    with of.api("bob") as bob:
        agent_id = bob.get(f"/api/v1/agents/{name}").raise_for_status().json()["id"]
        body = {"name": "for the other server", "scopes": SCOPES, "agents": [agent_id]}
        key = bob.post("/api/v1/keys", json=body).raise_for_status().json()["secret"]
    with here.api("admin") as admin:
        address = {"url": f"{of.url}/agents/{name}", "key": key}
        listing = admin.post("/api/v1/agent-discovery", json=address).raise_for_status().json()
        assert (listing["name"], listing["pricing"]["per_answer"]) == (name, PRICE)
        way = next(candidate for candidate in listing["ways"] if candidate["protocol"] == "uamp")
        agent = {
            "name": name,
            "kind": "remote",
            "key": key,
            **{field: way[field] for field in ("url", "protocol", "model")},
            "is_public": True,
            "pricing": {"per_answer": RESOLD},
            "options": {"pays_per_answer": "0.05"},
        }
        admin.post("/api/v1/agents", json=agent).raise_for_status()
        budget = f"/api/payments/onward/{name}"
        admin.put(budget, json={"amount": "1"}).raise_for_status()
    with here.api("alice") as alice:
        path = f"/api/v1/chats/{here.chat_id}/participants"
        alice.post(path, json={"agent": name}).raise_for_status()


def ask(server: Neighbour, text: str) -> tuple[list[Frame], list[Frame]]:
    """Ask the visitor in the shared chat and pay; return what asker and reader receive."""
    with server.socket("alice") as asker, server.socket("bob") as reader:
        asker.ask(f"@{server.visitor} {text}")
        demand = asker.until("payment.required")[-1]
        asker.send("payment.submit", response_id=demand["response_id"], payment=WALLET)
        frames = asker.until("response.done", "response.error")
        return frames, reader.until("response.done", "response.error")


@pytest.mark.long
def test_agents_of_two_servers_answer_in_each_others_chats(
    neighbours: list[Neighbour],
) -> None:
    north, south = neighbours
    before = {server.local: server.balance("bob") for server in neighbours}
    with thread_pool(2) as at_once:
        turns = list(at_once.map(lambda server: ask(server, WORDS), neighbours))

    for frames, reader_frames in turns:
        assert frames[-1]["type"] == "response.done", frames[-1]
        assert WORDS in text_of(frames)
        assert text_of(reader_frames) == text_of(frames)
        assert len([frame for frame in frames if frame["type"] == "response.delta"]) > 1, (
            "it streams"
        )
    for here, there in ((north, south), (south, north)):
        # Alice pays this server; bob's balance on the agent's own server pays that one.
        wait_until(lambda here=here: here.ledger(here.visitor) == [RESOLD, 0, True])  # type: ignore[misc]
        assert there.ledger(there.local) == [PRICE, 0, True]
        assert here.balance("alice") == "4.75"
        assert float(before[there.local]) - float(there.balance("bob")) == pytest.approx(0.02)
        with here.product.api("admin") as admin:
            budget = admin.get(f"/api/payments/onward/{here.visitor}").json()
        assert (budget["left"], budget["held"], budget["spent"]) == ("0.98", "0", PRICE)
        assert here.answers(here.visitor) == there.answers(there.local)
        assert "The ledger adds up." in here.product.manage("audit_ledger")
        assert here.product.manage("audit_log")
