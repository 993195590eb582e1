"""A server stops in the middle of a remote agent's answer, which continues on the agent's server.

The next process follows the answer to its end, or stops it there; the agent is not asked twice.
"""

from __future__ import annotations

import json
import signal
from typing import TYPE_CHECKING

import pytest

from tests.client import Story, UampClient, wait_until
from tests.journeys.product import running_product

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.journeys.product import Product

pytestmark = pytest.mark.long

PATHS = {
    "uamp": "/agents/{}",
    "uamp_http": "/agents/{}",
    "a2a": "/agents/{}/a2a",
    "a2a_03": "/agents/{}/a2a",
}
PRICE = "0.02"
QUESTION = "count " * 1_000
WORDS = " ".join(f"word{number}" for number in range(1, 201))
FAR_AGENT = """
from agents_app.models import Agent
price = {{"per_answer": {price!r}}}
Agent.objects.create(name="dear", is_public=True, options={{"script": "slow"}}, pricing=price)
"""
NEAR_AGENT = """
from agents_app.models import Agent
from agents_app.outbound.keys import encrypted_key
from agents_app.remote.addresses import target_of
from django.contrib.auth.models import User
agent = Agent.objects.create(
    name={name!r}, kind="remote", protocol={protocol!r}, url={url!r}, model={model!r},
    is_public=True, owner=User.objects.get(username="admin"),
    options={{"pays_per_answer": "0.05"}}, secret=encrypted_key({key!r}, target_of({url!r}).place),
)
"""
ANSWERS = """
import json
from sessions_app.models import Response
rows = Response.objects.filter(agent__name={agent!r}).order_by("created_at")
print(json.dumps([[row.status, row.text] for row in rows]))
"""
USED = """
from sessions_app.models import Response
row = Response.objects.filter(agent__name={agent!r}).latest("created_at")
print(row.usage["input_tokens"])
"""
CANCEL = """
from django.utils import timezone
from sessions_app.models import Response
Response.objects.filter(agent__name={agent!r}).update(cancel_requested_at=timezone.now())
"""
TASKS = """
from agents_app.models import RemoteTask
print(RemoteTask.objects.count())
"""
MONEY = """
import json
from agents_app.models import Agent
from payments_app import selectors, services
from payments_app.models import Hold
agent = Agent.objects.filter(name="dear").first()
earned = agent and str(selectors.balance(services.account_of_agent(agent.pk).id).posted)
held = Hold.objects.filter(state="active").count()
print(json.dumps([earned, held, services.audit().clean]))
"""


@pytest.fixture(scope="module")
def far(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Product]:
    """Run the server of the remote agents."""
    with running_product(tmp_path_factory.mktemp("far")) as running:
        running.run(FAR_AGENT.format(price=PRICE))
        yield running


@pytest.fixture(scope="module")
def near(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Product]:
    """Run the server that is stopped."""
    settings = {
        "UAMP_REMOTE_ALLOW_HOSTS": "127.0.0.1:*",
        "UAMP_LEASE_SECONDS": "3",
        "UAMP_SWEEP_SECONDS": "0.5",
        "UAMP_GRACE_SECONDS": "0.2",
    }
    with running_product(tmp_path_factory.mktemp("near"), has_workers=False, **settings) as running:
        yield running


def add_agent(near: Product, far: Product, protocol: str, target: str, name: str) -> None:
    """Add an agent of the far server, called with bob's key there."""
    url = far.url + PATHS[protocol].format(target)
    model = target if protocol.startswith("uamp") else ""
    key = far.people["bob"]["api_key"]
    near.run(NEAR_AGENT.format(name=name, protocol=protocol, url=url, model=model, key=key))


def answers(product: Product, agent: str) -> list[list[str]]:
    """Return the states and texts of an agent's answers, oldest first."""
    rows: list[list[str]] = json.loads(product.run(ANSWERS.format(agent=agent)))
    return rows


def tokens_read(product: Product, agent: str) -> int:
    """Return the input tokens of an agent's last answer."""
    return int(product.run(USED.format(agent=agent)))


def money(product: Product) -> list[object]:
    """Return the earnings of the agent with a price, open holds, and whether all adds up."""
    rows: list[object] = json.loads(product.run(MONEY))
    return rows


def socket(product: Product) -> UampClient:
    """Return alice's socket."""
    headers = {"Authorization": f"Bearer {product.people['alice']['api_key']}"}
    return UampClient(f"ws{product.url.removeprefix('http')}/uamp", headers=headers)


def begin(near: Product, agent: str) -> dict[str, object]:
    """Ask an agent, wait for its first words, and return how to resume the session."""
    with socket(near) as client:
        created = client.create_session(agent=agent)
        client.ask(QUESTION)
        client.until("response.delta")
        wait_until(lambda: near.run(TASKS).strip() == "1")
        return {
            "session_id": created["session_id"],
            "epoch": created["epoch"],
            "after": created["seq"],
        }


def end(near: Product, agent: str, resume: dict[str, object]) -> tuple[str, str]:
    """Resume the session; return the last event's type and the text as a client has it."""
    with socket(near) as client:
        client.send("session.create", uamp_version="1.0", agent=agent, session={}, resume=resume)
        frames = client.until("response.done", "response.error", "response.cancelled")
        story = Story().take_all(frames)
        return frames[-1]["type"], story.texts[frames[-1]["response_id"]]


@pytest.mark.parametrize(
    ("protocol", "number"),
    [
        ("uamp", signal.SIGKILL),
        ("a2a", signal.SIGKILL),
        ("a2a_03", signal.SIGKILL),
        ("uamp", signal.SIGTERM),
        ("a2a", signal.SIGTERM),
    ],
)
def test_an_answer_continues_on_its_own_server(
    near: Product, far: Product, protocol: str, number: signal.Signals
) -> None:
    name = f"{protocol}-{number.name}".lower().replace("_", "-")
    count_before = len(answers(far, "slow"))
    add_agent(near, far, protocol, "slow", name)
    resume = begin(near, name)
    near.stop(number)
    near.start()
    assert end(near, name, resume) == ("response.done", WORDS)
    assert answers(near, name) == [["completed", WORDS]]
    assert answers(far, "slow")[count_before:] == [["completed", WORDS]], "it was asked once"
    if protocol == "uamp":
        # Only the first process sent the question; its tokens count all the same.
        assert tokens_read(near, name) == tokens_read(far, "slow") >= len(QUESTION.split())
    assert near.run(TASKS).strip() == "0"


def test_an_answer_that_ended_in_the_meantime_is_read(near: Product, far: Product) -> None:
    add_agent(near, far, "uamp", "slow", "late")
    count_before = len(answers(far, "slow"))
    resume = begin(near, "late")
    near.stop(signal.SIGKILL)
    wait_until(lambda: answers(far, "slow")[count_before:] == [["completed", WORDS]])
    near.start()
    assert end(near, "late", resume) == ("response.done", WORDS)


def test_an_answer_that_cannot_be_followed_is_stopped_there(near: Product, far: Product) -> None:
    count_before = len(answers(far, "slow"))
    add_agent(near, far, "uamp_http", "slow", "http")
    begin(near, "http")
    near.stop(signal.SIGKILL)
    near.start()
    wait_until(lambda: [state for state, _ in answers(far, "slow")[count_before:]] == ["cancelled"])
    assert [state for state, _ in answers(near, "http")] == ["failed"]
    wait_until(lambda: near.run(TASKS).strip() == "0")


@pytest.mark.parametrize("protocol", ["uamp", "a2a"])
def test_an_answer_cancelled_during_the_outage_is_stopped_there(
    near: Product, far: Product, protocol: str
) -> None:
    count_before = len(answers(far, "slow"))
    add_agent(near, far, protocol, "slow", f"cancelled-{protocol}")
    begin(near, f"cancelled-{protocol}")
    near.stop(signal.SIGKILL)
    near.run(CANCEL.format(agent=f"cancelled-{protocol}"))
    near.start()
    wait_until(lambda: [state for state, _ in answers(far, "slow")[count_before:]] == ["cancelled"])
    assert [state for state, _ in answers(near, f"cancelled-{protocol}")] == ["cancelled"]
    wait_until(lambda: near.run(TASKS).strip() == "0")


def test_what_was_paid_there_is_counted_once(near: Product, far: Product) -> None:
    add_agent(near, far, "uamp", "dear", "paid")
    with near.api("admin") as admin:
        admin.put("/api/payments/onward/paid", json={"amount": "1"}).raise_for_status()
        resume = begin(near, "paid")
    near.stop(signal.SIGKILL)
    near.start()
    assert end(near, "paid", resume) == ("response.done", WORDS)
    wait_until(lambda: money(near) == [None, 0, True])
    assert money(far) == [PRICE, 0, True]
    with near.api("admin") as admin:
        budget = admin.get("/api/payments/onward/paid").json()
    assert (budget["left"], budget["held"], budget["spent"]) == ("0.98", "0", PRICE)
