"""Agents of peers that answer here, over each transport."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

import pytest
from django.contrib.auth.models import Permission, User
from django.core.exceptions import ValidationError

from agents_app import editing
from agents_app.models import Agent
from agents_app.outbound.rules import Policy, check_url
from federation_app import own_names
from federation_app.envelope.members.reading import envelope_of
from federation_app.envelope.signatures.keys import decode64
from federation_app.envelope.signatures.signature import verify_signature
from federation_app.envelope.streams.deltas import DIGEST_TYPE
from federation_app.exchange import replies
from federation_app.models import EnvelopeStream, Peer, PeerKey, PeerTrust, ReceivedEnvelope
from federation_app.peers import registry
from federation_app.remote_agents import conversation, questions
from sessions_app.models import Response
from tests.agents_app.remote.remote_agents import remote_agent
from tests.client import wait_until
from tests.federation_app.foreign_server import SAGE, Call, ForeignServer
from tests.federation_app.peer import ECHO, SERVER, ForeignPeer, Records, add_peer, text_of
from tests.live_server import shared_chat
from tests.sessions_app.billing.paid_agents import priced
from tests.sessions_app.turn.delegation import answer_text

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.client import Frame
    from tests.conftest import ServerAddress
    from tests.live_server import Dial, Person

pytestmark = pytest.mark.django_db(transaction=True)
PROTOCOLS = ("envelope", "envelope_grpc", "envelope_http")


@pytest.fixture
def own_peer(federated: ServerAddress) -> Peer:
    """Return this server as a peer of its own."""
    peer = Peer.objects.create(did=SERVER, name="here", trust=PeerTrust.OPERATOR)
    for key in own_names.own_keys(SERVER):
        PeerKey.objects.create(peer=peer, kid=key.kid, algorithm=key.algorithm, jwk=key.jwk())
    return peer


@pytest.fixture
def far(own_peer: Peer, federated: ServerAddress, rpc_place: str) -> Callable[..., Agent]:
    """Return a function that makes an agent, which an agent of this server answers for."""

    def make(protocol: str, target: str, **fields: Any) -> Agent:
        place = f"http://{rpc_place}" if protocol == "envelope_grpc" else federated.http
        did = f"{SERVER}:agents:{target}"
        values = {"name": "far", "model": did, **fields}
        return remote_agent(place, protocol=protocol, **values)

    return make


def question_events(dial: Dial, who: Person, agent: str, text: str = "hello there") -> list[Frame]:
    """Return the frames up to the end of an answer in a session of its own."""
    client = dial(who)
    client.create_session(agent=agent)
    return client.answer(text)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_an_answer_of_a_peer_streams_to_the_members_of_a_chat(
    far: Callable[..., Agent], dial: Dial, alice: Person, bob: Person, protocol: str
) -> None:
    far(protocol, "slow")
    chat = shared_chat(alice, bob, agents=("far",), trigger="always")
    asker, reader = dial(alice), dial(bob)
    asker.create_session(chat=chat.pk)
    reader.create_session(chat=chat.pk)
    asker.ask("count to 80")
    frames = asker.until("response.done", "response.error")
    assert len([f for f in frames if f["type"] == "response.delta"]) > 1, "it streams"
    assert "80" in answer_text(frames)
    assert answer_text(reader.until("response.done")) == answer_text(frames)
    stream = EnvelopeStream.objects.get()
    assert stream.receiver == f"{SERVER}:agents:slow"
    assert ReceivedEnvelope.objects.filter(intent="ask").count() == 1


@pytest.mark.sampled(1)
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_cancelling_an_answer_cancels_it_at_the_peer(
    far: Callable[..., Agent], dial: Dial, alice: Person, protocol: str
) -> None:
    far(protocol, "slow")
    client = dial(alice)
    client.create_session(agent="far")
    client.ask("count to 500")
    delta = client.until("response.delta")[-1]
    client.send("response.cancel", response_id=delta["response_id"])
    client.until("response.cancelled")
    slow = Agent.objects.get(name="slow")
    states = Response.objects.filter(agent=slow).values_list("status", flat=True)
    wait_until(lambda: set(states.all()) == {"cancelled"})


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_what_a_peer_refuses_ends_the_answer(
    far: Callable[..., Agent], own_peer: Peer, dial: Dial, alice: Person, protocol: str
) -> None:
    far(protocol, "unknown")
    assert question_events(dial, alice, "far")[-1]["type"] == "response.error"
    assert not ReceivedEnvelope.objects.exists()
    registry.revoke(own_peer)
    assert question_events(dial, alice, "far")[-1]["type"] == "response.error"


def test_two_agents_of_peers_that_lead_to_each_other_do_not_ask_without_an_end(
    far: Callable[..., Agent], dial: Dial, alice: Person, settings: Any
) -> None:
    settings.UAMP_REMOTE_HOPS = 3
    far("envelope", "pong", name="ping")
    far("envelope_http", "ping", name="pong")
    assert question_events(dial, alice, "ping")[-1]["type"] == "response.error"
    assert ReceivedEnvelope.objects.filter(intent="ask").count() == 3


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_an_answer_that_has_to_be_paid_ends_and_is_cancelled_at_the_peer(
    far: Callable[..., Agent], dial: Dial, alice: Person, protocol: str
) -> None:
    priced("seller", per_answer="0.25")
    far(protocol, "seller")
    error = question_events(dial, alice, "far")[-1]
    assert (error["type"], error["error"]["code"]) == ("response.error", "payment_required")
    assert "far has to be paid on its own server" in error["error"]["message"]
    statuses = Response.objects.filter(agent__name="seller").values_list("status", flat=True)
    wait_until(lambda: set(statuses.all()) == {"cancelled"})


def answered(text: str = "yes", **changes: Any) -> Callable[[Call], None]:
    """Return a function that answers a socket: a chunk, then the end with a changed answer."""

    def answer(call: Call) -> None:
        ask = call.receive()
        call.delta(ask["stream_id"], 0, "chunk", text="yes", offset=0)
        signed = call.server.signed(ask, text, **changes)
        call.delta(ask["stream_id"], 1, "done", envelope=signed)

    return answer


def test_an_agent_of_another_server_answers(sage: ForeignServer, dial: Dial, alice: Person) -> None:
    sage.calls.append(answered())
    assert answer_text(question_events(dial, alice, "sage")) == "yes"
    (ask,) = sage.received_of("ask")
    assert (ask["from"], ask["to"]) == (SERVER, [SAGE])
    assert ask["body"]["content"].endswith("hello there")
    assert ask["ext"] == {"uamp-hops": 1}


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    "answer",
    [
        answered("no"),
        answered(reply_to="urn:uuid:3f6c2f0a-9f0b-4a5e-8d57-0d6a3b1f7c21"),
        answered(intent="notify"),
        answered(to=["did:web:elsewhere.example"]),
        answered(ts="2020-01-01T00:00:00Z"),
        answered(**{"from": "did:web:worker.example:agents:other"}),
    ],
    ids=["text", "question", "intent", "receiver", "time", "sender"],
)
def test_an_answer_that_lies_fails(
    sage: ForeignServer, dial: Dial, alice: Person, answer: Callable[[Call], None]
) -> None:
    sage.calls.append(answer)
    error = question_events(dial, alice, "sage")[-1]
    assert (error["type"], error["error"]["code"]) == ("response.error", "provider_error")


def test_an_answer_without_a_signature_fails(
    sage: ForeignServer, dial: Dial, alice: Person
) -> None:
    def answer(call: Call) -> None:
        ask = call.receive()
        call.delta(ask["stream_id"], 0, "chunk", text="yes", offset=0)
        call.delta(ask["stream_id"], 1, "done")

    sage.calls.append(answer)
    assert question_events(dial, alice, "sage")[-1]["error"]["code"] == "provider_error"


@pytest.fixture
def long_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let answers of more than two characters not fit into an envelope."""
    for module in (conversation, replies):
        monkeypatch.setattr(module, "SIGNED_CHARS", 2)


def digest(text: str, **changes: Any) -> dict[str, Any]:
    """Return the body of a signed digest."""
    value = {"sha256": hashlib.sha256(text.encode()).hexdigest(), "length": len(text), **changes}
    return {"type": DIGEST_TYPE, "content": json.dumps(value)}


def answered_at_length(body: Any, **changes: Any) -> Callable[[Call], None]:
    """Return a function that answers with a text too long to be signed, and a signed digest."""

    def answer(call: Call) -> None:
        ask = call.receive()
        call.delta(ask["stream_id"], 0, "chunk", text="y\u00e9s", offset=0)
        signed = {"digest": call.server.signed(ask, "", body=body, **changes)} if body else {}
        call.delta(ask["stream_id"], 1, "done", **signed)

    return answer


@pytest.mark.usefixtures("long_answers")
def test_the_digest_of_an_answer_that_fits_no_envelope_is_signed(
    federated: ServerAddress, peer: ForeignPeer
) -> None:
    ask = peer.envelope(content="hello th\u00e9re")
    with Records(federated.ws) as records:
        records.send(ask)
        deltas = records.until("done", "error")
    done = deltas[-1]["payload"]
    assert "envelope" not in done
    signed = envelope_of(done["digest"])
    verify_signature(signed.digests(), signed.sig, sender=ECHO, keys=own_names.own_keys(ECHO))
    assert json.loads(signed.body.content) == json.loads(digest(text_of(deltas))["content"])
    assert signed.body.type == DIGEST_TYPE
    assert signed.context[0].hash == f"sha256:{envelope_of(ask).sha256}"


def test_the_digest_of_a_short_answer_of_many_bytes_is_signed(
    federated: ServerAddress,
    peer: ForeignPeer,
    far: Callable[..., Agent],
    dial: Dial,
    alice: Person,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Each control character takes six bytes in JSON.
    monkeypatch.setattr(replies, "SIGNED_BYTES", 60)
    for content, member in (("hello", "envelope"), ("\x01" * 20 + "a", "digest")):
        with Records(federated.ws) as records:
            records.send(peer.envelope(content=content))
            deltas = records.until("done", "error")
        assert [name for name in deltas[-1]["payload"] if name in ("envelope", "digest")] == [
            member
        ]
    far("envelope_http", "echo")
    monkeypatch.setattr(replies, "SIGNED_BYTES", 4)
    assert answer_text(question_events(dial, alice, "far")).endswith("hello there")


@pytest.mark.usefixtures("long_answers")
def test_a_long_answer_of_a_peer_with_its_digest_is_accepted(
    far: Callable[..., Agent], sage: ForeignServer, dial: Dial, alice: Person
) -> None:
    far("envelope_http", "echo")
    assert answer_text(question_events(dial, alice, "far")).endswith("hello there")
    sage.calls.append(answered_at_length(digest("y\u00e9s")))
    assert answer_text(question_events(dial, alice, "sage")) == "y\u00e9s"


@pytest.mark.usefixtures("long_answers")
def test_a_long_answer_without_a_digest_is_accepted_from_its_server_alone(
    sage: ForeignServer, dial: Dial, alice: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(questions, "is_direct", lambda *_: True)
    sage.calls.append(answered_at_length(None))
    assert answer_text(question_events(dial, alice, "sage")) == "y\u00e9s"
    # A digest is verified wherever it came from.
    sage.calls.append(answered_at_length(digest("yes")))
    assert question_events(dial, alice, "sage")[-1]["error"]["code"] == "provider_error"


@pytest.mark.sampled(3)
@pytest.mark.usefixtures("long_answers")
@pytest.mark.parametrize(
    "answer",
    [
        answered_at_length(None),
        answered_at_length(digest("yes")),
        answered_at_length(digest("y\u00e9s", length=4)),
        answered_at_length({**digest("y\u00e9s"), "type": "application/json"}),
        answered_at_length({"type": DIGEST_TYPE, "content": "[]"}),
        answered_at_length(
            digest("y\u00e9s"), reply_to="urn:uuid:3f6c2f0a-9f0b-4a5e-8d57-0d6a3b1f7c21"
        ),
        answered_at_length(digest("y\u00e9s"), intent="notify"),
        answered_at_length(digest("y\u00e9s"), ts="2020-01-01T00:00:00Z"),
    ],
    ids=["unsigned", "text", "length", "type", "content", "question", "intent", "time"],
)
def test_a_long_answer_that_a_hub_may_have_changed_fails(
    sage: ForeignServer, dial: Dial, alice: Person, answer: Callable[[Call], None]
) -> None:
    sage.calls.append(answer)
    error = question_events(dial, alice, "sage")[-1]
    assert (error["type"], error["error"]["code"]) == ("response.error", "provider_error")


@pytest.mark.parametrize(
    ("url", "is_direct"),
    [
        ("https://worker.example", True),
        ("https://worker.example:443/uamp", True),
        ("https://worker.example:8443", False),
        ("https://hub.example", False),
        ("https://worker.example.hub.example", False),
        ("http://worker.example:443", False),
    ],
)
def test_only_tls_to_the_host_of_a_name_leads_past_every_hub(
    own_peer: Peer, sage: ForeignServer, url: str, *, is_direct: bool
) -> None:
    target = check_url(url, Policy(allowed=frozenset({"worker.example:*"})))
    question = questions.signed_question(SAGE, "hello", hops=1)
    assert questions.is_direct(question, target) is is_direct


@pytest.mark.parametrize(
    ("url", "audience"),
    [
        ("https://worker.example", "did:web:worker.example"),
        ("https://hub.example", ["did:web:worker.example", "did:web:hub.example"]),
        ("https://hub.example:8443", ["did:web:worker.example", "did:web:hub.example%3A8443"]),
        ("https://[2001:db8::1]", "did:web:worker.example"),
        ("http://127.0.0.1:1", ["did:web:worker.example", "did:web:elsewhere.example"]),
        ("http://127.0.0.1:2", "did:web:worker.example"),
        ("http://127.0.0.1:3", ["did:web:worker.example", "did:web:127.0.0.1%3A3"]),
    ],
)
def test_a_token_names_the_hub_through_which_a_stream_is_read(
    own_peer: Peer, sage: ForeignServer, url: str, audience: object
) -> None:
    add_peer("elsewhere.example")
    for port, did in enumerate(("did:web:elsewhere.example", "did:web:worker.example"), 1):
        Peer.objects.filter(did=did).update(documents_address=f"http://127.0.0.1:{port}")
    hosts = ("127.0.0.1", "2001:db8::1", "hub.example", "worker.example")
    target = check_url(url, Policy(allowed=frozenset(f"{host}:*" for host in hosts)))
    token = questions.bearer(questions.signed_question(SAGE, "hello", hops=1), target)
    assert json.loads(decode64(token.split(".")[1]))["aud"] == audience


def test_deltas_are_acknowledged_before_the_window_is_full(
    sage: ForeignServer, dial: Dial, alice: Person
) -> None:
    def answer(call: Call) -> None:
        ask = call.receive()
        limit = ask["delta_window"]
        for number in range(2 * limit):
            if number == limit:
                assert call.receive()["payload"]["ack"] >= limit // 2 - 1
            call.delta(ask["stream_id"], number, "chunk", text="x", offset=number)
        call.delta(
            ask["stream_id"], 2 * limit, "done", envelope=call.server.signed(ask, "x" * 2 * limit)
        )

    sage.calls.append(answer)
    assert answer_text(question_events(dial, alice, "sage")) == "x" * 128


def test_only_those_who_may_change_peers_make_agents_of_peers(alice: Person) -> None:
    values = {
        "name": "sage",
        "kind": "remote",
        "protocol": "envelope",
        "url": "http://127.0.0.1:1",
        "model": SAGE,
    }
    with pytest.raises(ValidationError) as refused:
        editing.make(values, owner=alice.user)
    assert set(refused.value.message_dict) == {"protocol"}
    alice.user.user_permissions.add(Permission.objects.get(codename="change_peer_trust"))
    owner = User.objects.get(pk=alice.user.pk)
    with pytest.raises(ValidationError) as refused:
        editing.make({**values, "model": "sage", "key": "a token"}, owner=owner)
    assert set(refused.value.message_dict) == {"key", "model"}
    assert editing.make(values, owner=owner).protocol == "envelope"
