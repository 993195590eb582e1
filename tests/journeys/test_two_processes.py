"""Two server processes and a worker on one PostgreSQL and one Redis, without sticky sessions.

Work requested on one process is received, stopped, answered and taken over on the other.
"""

from __future__ import annotations

import base64
import signal
import time
from typing import TYPE_CHECKING

import httpx
import pytest

from tests import factories
from tests.client import UampClient, new_event, output_text, text_of
from tests.journeys.cluster import WORDS, Cluster, ask, join, running_cluster
from tests.journeys.paying_person import PayingPerson
from tests.sessions_app.model_server import call_chunks, model_server, text_chunks

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.redis

SWITCH_SECONDS = 60.0
MODEL_AGENT = (
    "from agents_app.models import Agent\n"
    'Agent.objects.create(name="model", is_public=True, provider="openai_compat", model="m",'
    ' options={{"base_url": {url!r}}})\n'
)


@pytest.fixture(scope="module")
def cluster(redis_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    folder = tmp_path_factory.mktemp("cluster")
    hosts = {"UAMP_MODEL_ALLOW_HOSTS": "127.0.0.1:*"}
    with running_cluster(redis_url, folder, **hosts) as running:
        yield running


def test_a_member_on_the_other_process_sees_the_answer_grow_and_stops_it(cluster: Cluster) -> None:
    chat_id = cluster.product.chat_id
    with cluster.socket(0, "alice") as alice, cluster.socket(1, "bob") as bob:
        join(alice, chat_id)
        join(bob, chat_id)
        response_id = ask(alice, "@slow count")
        received = bob.until("response.created")
        while len(text_of(received)) < len("word1 word2 word3"):
            received.append(bob.receive())
        bob.send("response.cancel", response_id=response_id)
        received += bob.until("response.cancelled")
        ended = alice.until("response.cancelled")[-1]
        partial = output_text(ended)
        assert WORDS.startswith(partial)
        assert text_of(received) == partial


def test_a_watcher_on_the_other_process_receives_messages_and_new_chats(
    cluster: Cluster,
) -> None:
    chat_id = cluster.product.chat_id
    with cluster.socket(0, "alice") as alice, cluster.socket(1, "bob") as bob:
        bob.send("chats.watch")
        bob.until("chats.watched")
        join(alice, chat_id)
        ask(alice, "@echo and @bob, look")
        seen = bob.until("chat.activity")[-1]
        assert (seen["chat_id"], seen["message"]["name"]) == (chat_id, "alice")
        assert len(seen["message"]["mentions"]) == 1
        alice.until("response.done")
        response = httpx.post(
            f"http://127.0.0.1:{cluster.ports[0]}/api/v1/chats",
            headers={"Authorization": f"Bearer {cluster.product.people['alice']['api_key']}"},
            json={"title": "Later", "users": ["bob"], "agents": []},
            timeout=90,
            trust_env=False,
        )
        later = response.raise_for_status().json()["id"]
        added = bob.until("person.changed")[-1]
        assert (added["subject"], added["chat_id"]) == ("chat_added", later)
        session_id = join(alice, later)["session_id"]
        alice.send("input.text", text="here now", session_id=session_id)
        alice.send("response.create", session_id=session_id)
        frames = bob.until("chat.activity")
        while frames[-1]["chat_id"] != later:
            frames = bob.until("chat.activity")
        assert frames[-1]["message"]["content"] == "here now"


def test_a_fork_is_one_chat_for_both_processes(cluster: Cluster) -> None:
    chat_id = cluster.product.chat_id
    with (
        cluster.socket(0, "alice") as first,
        cluster.socket(1, "alice") as second,
        cluster.socket(1, "alice") as watching,
    ):
        watching.send("chats.watch")
        watching.until("chats.watched")
        join(first, chat_id)
        join(second, chat_id)
        ask(first, "@echo mountains")
        answer = second.until("message.created")[-1]
        while answer["message"]["role"] != "assistant":
            answer = second.until("message.created")[-1]
        # The first process's answer was lost, so the other one is asked again.
        forks = set()
        for client in (first, second):
            client.send("chat.fork", message_id=answer["message"]["id"], key="once")
            forks.add(client.until("chat.forked")[-1]["chat_id"])
        (fork_id,) = forks
        added = watching.until("person.changed")[-1]
        assert (added["subject"], added["chat_id"]) == ("chat_added", fork_id)

        # An answer requested in it on one process grows on the other.
        session_id = join(second, fork_id)["session_id"]
        there = join(first, fork_id)["session_id"]
        second.send("input.text", text="@echo rivers", session_id=session_id)
        second.send("response.create", session_id=session_id)
        frames = first.until("response.done")
        assert {frame["session_id"] for frame in frames if "delta" in frame} == {there}
        assert text_of(frames) == "rivers"


def test_a_tool_result_may_arrive_on_the_other_process(cluster: Cluster) -> None:
    tool = {"type": "function", "function": {"name": "search", "parameters": {"type": "object"}}}
    with cluster.socket(0, "alice", "/agents/tool-user/uamp") as first:
        session = {"modalities": ["text"], "tools": [tool]}
        first.send("session.create", uamp_version="1.0", session=session)
        created = first.until("session.created")[-1]
        response_id = ask(first, "weather")
        call = first.until("tool.call")[-1]
        with cluster.socket(1, "alice") as second:
            resume = {"session_id": created["session_id"], "after": created["seq"]}
            second.send("session.create", uamp_version="1.0", session=session, resume=resume)
            again = second.until("tool.call")[-1]
            assert again["call_id"] == call["call_id"]
            second.send("tool.result", call_id=call["call_id"], result='"sunny"')
            done = second.until("response.done", timeout=SWITCH_SECONDS)[-1]
        assert done["response_id"] == response_id
        assert first.until("response.done")[-1]["seq"] == done["seq"]


TOOL = {"type": "function", "function": {"name": "search", "parameters": {"type": "object"}}}


@pytest.mark.parametrize("how", ["standing", "resumed"])
def test_a_batch_on_the_other_process_brings_the_answer(cluster: Cluster, how: str) -> None:
    with cluster.socket(0, "alice", "/agents/tool-user/uamp") as first:
        session = {"modalities": ["text"], "tools": [TOOL]}
        first.send("session.create", uamp_version="1.0", session=session)
        created = first.until("session.created")[-1]
        response_id = ask(first, "weather")
        call = first.until("tool.call")[-1]
        session_id = created["session_id"]
        events = [new_event("tool.result", call_id=call["call_id"], result='"sunny"')]
        if how == "standing":
            events[0]["session_id"] = session_id
        else:
            resume = {"session_id": session_id, "after": created["seq"]}
            events.insert(0, new_event("session.create", session=session, resume=resume))
        answered = cluster.batch(1, "alice", *events)
        assert answered[-1]["type"] == "response.done", answered
        assert answered[-1]["response_id"] == response_id
        assert "sunny" in output_text(answered[-1])
        assert output_text(answered[-1]) == text_of(answered, response_id)


def opened(client: UampClient) -> str:
    """Open a new session and return its id."""
    client.send("session.create", uamp_version="1.0", session={"modalities": ["text"]})
    session_id: str = client.until("session.created")[-1]["session_id"]
    return session_id


@pytest.mark.parametrize("approved", [True, pytest.param(False, marks=pytest.mark.long)])
def test_a_batch_on_the_other_process_decides_on_a_call_and_brings_the_answer(
    cluster: Cluster, *, approved: bool
) -> None:
    with cluster.socket(0, "alice", "/agents/careful/uamp") as first:
        session_id = opened(first)
        picture = base64.b64encode(factories.png()).decode()
        first.send("input.image", image=picture, format="png")
        response_id = ask(first, "black and white")
        call_id = first.until("tool.approval_required")[-1]["call_id"]
        decision = new_event(
            "tool.approve", call_id=call_id, approved=approved, session_id=session_id
        )
        frames = cluster.batch(1, "alice", decision)
        assert (frames[-1]["type"], frames[-1]["response_id"]) == ("response.done", response_id)
        (done,) = [frame for frame in frames if frame["type"] == "tool.approval_done"]
        assert (done["call_id"], done["approved"]) == (call_id, approved)
        results = [
            item["tool_result"]
            for item in frames[-1]["response"]["output"]
            if item["type"] == "tool_result"
        ]
        assert [result.get("is_error", False) for result in results] == [not approved]
        assert text_of(frames, response_id) == output_text(frames[-1])
        assert first.until("response.done")[-1]["seq"] == frames[-1]["seq"]


@pytest.mark.parametrize("further", [0, 90])
def test_a_batch_on_the_other_process_pays_and_brings_the_answer(
    cluster: Cluster, further: int
) -> None:
    """With `further` events the answer ends before the batch reads the log."""
    payer = PayingPerson(cluster.product, money="5")
    with cluster.socket(0, payer.name, f"/agents/{payer.agent}/uamp") as first:
        session_id = opened(first)
        first.ask("Hello")
        demand = first.until("payment.required")[-1]
        payment = {"scheme": "balance", "amount": demand["requirements"]["amount"]}
        submit = new_event(
            "payment.submit",
            payment=payment,
            response_id=demand["response_id"],
            session_id=session_id,
        )
        pings = [new_event("ping", session_id=session_id) for _ in range(further)]
        frames = cluster.batch(1, payer.name, submit, *pings)
        types = [frame["type"] for frame in frames]
        assert "payment.accepted" in types
        done = frames[types.index("response.done")]
        assert done["response_id"] == demand["response_id"]
        assert output_text(done) == text_of(frames, done["response_id"]) == "Hello"
        assert done["response"]["usage"]["cost"]["total_cost"] == 1


def test_a_batch_on_the_other_process_has_what_the_client_is_asked_next(cluster: Cluster) -> None:
    answers = (
        call_chunks(("a", "search", "{}")),
        call_chunks(("b", "search", "{}")),
        text_chunks("Sunny"),
    )
    with model_server(*answers) as model:
        cluster.product.run(MODEL_AGENT.format(url=model.url))
        with cluster.socket(0, "alice", "/agents/model/uamp") as first:
            session = {"modalities": ["text"], "tools": [TOOL]}
            first.send("session.create", uamp_version="1.0", session=session)
            session_id = first.until("session.created")[-1]["session_id"]
            response_id = ask(first, "weather")
            first.until("tool.call")
            answer = {"result": "1", "session_id": session_id}
            frames = cluster.batch(1, "alice", new_event("tool.result", call_id="a", **answer))
            assert [f["call_id"] for f in frames if f["type"] == "tool.call"] == ["b"]
            frames = cluster.batch(1, "alice", new_event("tool.result", call_id="b", **answer))
            end = frames[-1]
            assert (end["type"], end["response_id"]) == ("response.done", response_id)
            assert output_text(end) == text_of(frames, response_id) == "Sunny"


def test_a_batch_on_the_other_process_ends_when_the_client_is_asked_again(
    cluster: Cluster,
) -> None:
    url = f"http://127.0.0.1:{cluster.ports[1]}/uamp"
    headers = {"Authorization": f"Bearer {cluster.product.people['alice']['api_key']}"}
    with cluster.socket(0, "alice", "/agents/tool-user/uamp") as first:
        session = {"modalities": ["text"], "tools": [TOOL]}
        first.send("session.create", uamp_version="1.0", session=session)
        session_id = first.until("session.created")[-1]["session_id"]
        ask(first, "weather")
        first.until("tool.call")
        # Nothing continues on its own: the exchange ends with the request to the client.
        ping = [new_event("ping", session_id=session_id)]
        frames = httpx.post(url, json=ping, headers=headers, timeout=5, trust_env=False).json()
        assert "pong" in [frame["type"] for frame in frames]
        first.send("response.cancel")
        first.until("response.cancelled")


def test_progress_of_a_worker_reaches_both_processes(cluster: Cluster) -> None:
    product = cluster.product
    product.port = cluster.ports[0]
    with product.api("alice") as client:
        chat = f"/api/v1/chats/{product.chat_id}"
        client.post(f"{chat}/participants", json={"agent": "report"}).raise_for_status()
        table = ("city,temp\n" + "".join(f"c{n},{n}\n" for n in range(50))).encode()
        upload = client.post("/api/v1/contents", files={"file": ("w.csv", table, "text/csv")})
    item = upload.raise_for_status().json()["item"]
    with cluster.socket(0, "alice") as alice, cluster.socket(1, "bob") as bob:
        join(alice, product.chat_id)
        join(bob, product.chat_id)
        alice.send("input.file", **{name: item[name] for name in item if name != "type"})
        response_id = ask(alice, "@report please")
        for member in (alice, bob):
            frames = member.until("response.done", timeout=SWITCH_SECONDS)
            progress = [frame["percent"] for frame in frames if frame["type"] == "progress"]
            assert progress == sorted(progress)
            assert progress[-1] == 100
            assert frames[-1]["response_id"] == response_id


def test_the_other_process_ends_what_a_killed_one_left(cluster: Cluster) -> None:
    chat_id = cluster.product.chat_id
    with cluster.socket(1, "bob") as bob:
        join(bob, chat_id)
        with cluster.socket(0, "alice") as alice:
            join(alice, chat_id)
            response_id = ask(alice, "@slow count")
            alice.until("response.delta")
            time.sleep(1)
            cluster.end("server0", signal.SIGKILL)
        frames = bob.until("response.error", timeout=SWITCH_SECONDS)
        assert frames[-1]["response_id"] == response_id
        assert frames[-1]["error"]["code"] == "interrupted"
        message = bob.until("message.created")[-1]["message"]
        assert message["status"] == "failed"
        assert WORDS.startswith(message["content"])
        assert message["content"]
        cluster.start_server(0)
        with cluster.socket(0, "alice") as alice:
            join(alice, chat_id)
            response_id = ask(alice, "@echo still here")
            assert bob.until("response.done")[-1]["response_id"] == response_id


@pytest.mark.long
def test_an_orderly_end_closes_sockets_with_1012(cluster: Cluster) -> None:
    with cluster.socket(1, "bob") as bob:
        join(bob, cluster.product.chat_id)
        cluster.end("server1", signal.SIGTERM)
        assert bob.close_code() == 1012
    cluster.start_server(1)
