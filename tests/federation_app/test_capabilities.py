"""Capability tokens: issued to a peer, demanded, refused, revoked; and sent by our questions."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta
from io import StringIO
from typing import TYPE_CHECKING, Any

import jwt
import pytest
from django.contrib.auth.models import Permission, User
from django.core.management import CommandError, call_command
from django.db import transaction
from django.urls import reverse

from agents_app import editing
from agents_app.models import Agent
from audit_app.models import AuditRecord
from federation_app import own_names
from federation_app.envelope.errors import EnvelopeError
from federation_app.envelope.members.reading import Intent
from federation_app.envelope.names.tokens import signed_token
from federation_app.envelope.signatures.keys import EDDSA, EnvelopeKey
from federation_app.models import CapabilityToken, Peer, ReceivedEnvelope
from federation_app.terms import capabilities
from sessions_app.process import retention
from signing_app import owner_keys
from signing_app.models import PublishedKey
from tests.federation_app.peer import ECHO, HOST, SERVER, ForeignPeer, Records, add_peer, text_of
from tests.federation_app.test_remote_agents import PROTOCOLS, far, own_peer, question_events
from tests.federation_app.test_websocket import error_of
from tests.federation_app.two_servers import OTHER
from tests.sessions_app.turn.delegation import answer_text

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.test import Client

    from tests.conftest import ServerAddress
    from tests.federation_app.two_servers import OtherServer
    from tests.live_server import Dial, Person

__all__ = ["far", "own_peer"]

pytestmark = pytest.mark.django_db(transaction=True)


def token_for(
    peer: ForeignPeer, *agents: str, intents: tuple[Intent, ...] = (Intent.ASK,), hours: int = 1
) -> str:
    """Return a token that was issued to a peer."""
    return capabilities.issue(peer.row, intents=intents, agents=agents, hours=hours)[1]


def forged(peer: ForeignPeer, key: Any, **changes: Any) -> str:
    """Return a token with the claims of an issued one, signed with another key or changed."""
    row = CapabilityToken.objects.filter(peer=peer.row, revoked_at=None).latest("created_at")
    claims: dict[str, Any] = {
        "issuer": SERVER,
        "subject": peer.did,
        "audience": SERVER,
        "scope": "uamp:ask",
        "now": datetime.now(UTC),
        "token_id": row.pk,
        **changes,
    }
    return signed_token(EnvelopeKey(f"{SERVER}#{key.kid}", key.private), **claims)


def answer(records: Records, envelope: Any) -> tuple[str, str]:
    """Return the code and the detail of a refusal, or the text of the answer and ""."""
    records.send(envelope)
    record = records.receive()
    if "intent" in record:
        return error_of(record)["code"], error_of(record).get("detail", "")
    deltas = [record]
    while deltas[-1]["type"] not in {"done", "error"}:
        deltas.append(records.receive())
    return text_of(deltas), ""


def test_tokens_are_deleted_some_time_after_they_have_expired(settings: Any) -> None:
    """A revoked token is deleted no earlier, so that operators can see that it was revoked."""
    settings.UAMP_FEDERATION_HOST = HOST
    peer = add_peer()
    now = datetime.now(UTC)
    for name, expired_days_ago in {"old": 31, "recent": 29, "valid": -1}.items():
        for revoked_at in (None, now):
            token_for(peer)
            row = CapabilityToken.objects.latest("created_at")
            CapabilityToken.objects.filter(pk=row.pk).update(
                intents=[name],
                expires_at=now - timedelta(days=expired_days_ago),
                revoked_at=revoked_at,
            )
    assert retention.sweep(limit=1) == 1
    assert retention.sweep(limit=10) == 1
    assert retention.sweep(limit=10) == 0
    rows = CapabilityToken.objects.order_by("created_at").values_list("intents", flat=True)
    assert list(rows) == [["recent"]] * 2 + [["valid"]] * 2


def test_a_question_with_an_issued_token_is_answered_where_one_is_demanded(
    federated: ServerAddress,
) -> None:
    peer = add_peer()
    Peer.objects.update(asks_need_token=True)
    token = token_for(peer, "Echo")
    with Records(federated.ws) as records:
        assert answer(records, peer.envelope()) == ("4.03", "cap_token")
        assert not ReceivedEnvelope.objects.exists()
        assert answer(records, peer.envelope(cap_token=token)) == ("hello", "")
        # What follows a question needs none, and its scope is not the token's.
        assert answer(records, peer.envelope("cancel", "", stream_id="other"))[0] == "4.04"
        assert answer(records, peer.envelope("cancel", "", cap_token=token)) == ("4.03", "scope")
        Peer.objects.update(asks_need_token=False)
        assert answer(records, peer.envelope()) == ("hello", "")


def test_a_token_that_is_not_good_is_refused_and_runs_nothing(federated: ServerAddress) -> None:
    peer, other = add_peer(), add_peer("other.example")
    good, others = token_for(peer), token_for(other)
    Agent.objects.get_or_create(name="silent", defaults={"is_public": True})
    revoked = token_for(peer)
    assert capabilities.revoke(CapabilityToken.objects.filter(peer=peer.row).latest("created_at"))
    ours: Any = owner_keys.signing_key(capabilities.KEY_OWNER, EDDSA)
    envelopes: Any = owner_keys.signing_key(own_names.KEY_OWNER, EDDSA)
    past = datetime.now(UTC) - timedelta(hours=2)
    header, payload, signature = good.split(".")
    tokens = {
        "of another agent": (token_for(peer, "silent"), "4.01"),
        "of another intent": (token_for(peer, intents=(Intent.CANCEL,)), "4.03"),
        "of another peer": (others, "4.01"),
        "revoked": (revoked, "4.01"),
        "expired": (forged(peer, ours, now=past, seconds=60), "4.01"),
        "never issued": (forged(peer, ours, token_id="c0ffee"), "4.01"),
        "without an id": (forged(peer, ours, token_id=""), "4.01"),
        "the id of another peer": (forged(other, ours, subject=peer.did), "4.01"),
        "for another server": (forged(peer, ours, audience="did:web:far.example"), "4.01"),
        "for too long": (forged(peer, ours, seconds=367 * 86_400), "4.01"),
        "of the key of envelopes": (forged(peer, envelopes), "4.01"),
        "altered": (f"{header}.{payload[:-2]}AA.{signature}", "4.01"),
        "cut": (f"{header}.{payload}.{signature[:-8]}", "4.01"),
        "no token": ("a.b.c", "4.01"),
        "its own": (peer.bearer(scope="uamp:ask")["Authorization"].split()[1], "4.01"),
    }
    with Records(federated.ws) as records:
        assert answer(records, peer.envelope(cap_token=good)) == ("hello", "")
        for name, (token, code) in tokens.items():
            assert answer(records, peer.envelope(cap_token=token))[0] == code, name
        assert ReceivedEnvelope.objects.count() == 1
        assert answer(records, peer.envelope(cap_token=forged(peer, ours)))[0] == "hello"
        # A key that may have leaked is withdrawn with all that it signed.
        owner_keys.rotate(capabilities.KEY_OWNER)
        assert answer(records, peer.envelope(cap_token=good)) == ("hello", "")
        owner_keys.withdraw(ours.kid)
        assert answer(records, peer.envelope(cap_token=good))[0] == "4.01"


def test_tokens_stay_valid_when_their_key_is_rotated_under_rs256(
    federated: ServerAddress, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.UAMP_SIGNATURE_ALGORITHM = "RS256"
    peer = add_peer()
    good = token_for(peer)
    assert owner_keys.rotate(capabilities.KEY_OWNER).algorithm == EDDSA
    # As earlier releases rotated it.
    monkeypatch.setattr(owner_keys, "_algorithms", {})
    assert owner_keys.rotate(capabilities.KEY_OWNER).algorithm == "RS256"
    with Records(federated.ws) as records:
        for token in (good, token_for(peer)):
            assert answer(records, peer.envelope(cap_token=token)) == ("hello", "")


def test_a_key_that_was_rolled_back_signs_nothing(settings: Any) -> None:
    settings.UAMP_FEDERATION_HOST = HOST
    peer = add_peer()
    with transaction.atomic():
        token_for(peer)
        assert owner_keys.known_key(capabilities.KEY_OWNER) is None
        transaction.set_rollback(True)
    assert not PublishedKey.objects.filter(owner=capabilities.KEY_OWNER).exists()
    kid = jwt.get_unverified_header(token_for(peer))["kid"]
    assert kid == f"{SERVER}#{PublishedKey.objects.get(owner=capabilities.KEY_OWNER).pk}"
    assert owner_keys.known_key(capabilities.KEY_OWNER) is not None


def test_a_token_has_bounds(settings: Any) -> None:
    settings.UAMP_FEDERATION_HOST = HOST
    peer = add_peer()
    for intents, agents, hours in (
        ((), (), 1),
        ((Intent.ASK,), (), 0),
        ((Intent.ASK,), (), capabilities.MAX_HOURS + 1),
        ((Intent.ASK,), ("unknown",), 1),
        ((Intent.ASK,), ("echo",) * 2 + tuple(f"a{n}" for n in range(20)), 1),
    ):
        with pytest.raises(EnvelopeError):
            token_for(peer, *agents, intents=intents, hours=hours)
    assert not CapabilityToken.objects.exists()
    assert len(token_for(peer, hours=capabilities.MAX_HOURS)) < capabilities.TOKEN_CHARS


def test_names_that_make_a_token_too_long_are_refused(settings: Any) -> None:
    settings.UAMP_FEDERATION_HOST = f"{'a' * 60}.{'b' * 60}.{'c' * 60}.example"
    peer = add_peer()
    names = [f"{number:02}{'x' * 60}" for number in range(capabilities.MAX_AGENTS)]
    Agent.objects.bulk_create(Agent(name=name) for name in names)
    with pytest.raises(EnvelopeError, match="too long"):
        token_for(peer, *names)
    assert not CapabilityToken.objects.exists()


def operate(client: Client, row: Any, name: str, **fields: Any) -> Any:
    """Send the form of an operation in the admin."""
    view = f"admin:federation_app_{row._meta.model_name}_operate"
    return client.post(reverse(view, args=[row.pk, name]), {"reason": "agreed", **fields})


def test_an_operator_issues_lists_and_revokes_a_token(
    admin_client: Client, federated: ServerAddress
) -> None:
    peer = add_peer()
    fields = {"intents": ["ask", "cancel"], "agents": "echo", "hours": 24}
    assert (
        "There is no agent"
        in operate(
            admin_client, peer.row, "issue", **{**fields, "agents": "unknown"}
        ).content.decode()
    )
    page = operate(admin_client, peer.row, "issue", **fields).content.decode()
    (token,) = re.findall(r'id="secret">([^<]+)<', page)
    row = CapabilityToken.objects.get()
    assert (row.audience, row.intents, row.revoked_at) == ([ECHO], ["ask", "cancel"], None)
    record = AuditRecord.objects.get(action="key.made")
    assert (record.reason, record.object_id) == ("agreed", str(peer.row.pk))
    assert row.pk in record.detail
    assert token not in record.detail
    listing = admin_client.get(reverse("admin:federation_app_capabilitytoken_changelist"))
    assert row.pk in listing.content.decode()
    assert token not in listing.content.decode()
    operate(admin_client, peer.row, "demand")
    with Records(federated.ws) as records:
        assert answer(records, peer.envelope())[0] == "4.03"
        assert answer(records, peer.envelope(cap_token=token)) == ("hello", "")
        operate(admin_client, row, "revoke")
        assert answer(records, peer.envelope(cap_token=token)) == ("4.01", "cap_token")
        operate(admin_client, peer.row, "stop_demanding")
        assert answer(records, peer.envelope()) == ("hello", "")
    assert AuditRecord.objects.filter(action="key.revoked", object_id=row.pk).count() == 1
    assert AuditRecord.objects.filter(action="row.changed").count() == 2


def test_a_form_that_is_sent_twice_issues_one_token(
    admin_client: Client, federated: ServerAddress
) -> None:
    peer = add_peer()
    fields = {"intents": ["ask"], "agents": "", "hours": 24}
    for number in (1, 2):
        view = reverse("admin:federation_app_peer_operate", args=[peer.row.pk, "issue"])
        form = admin_client.get(view).context["form"]
        seen = form.initial["seen"]
        page = shown(operate(admin_client, peer.row, "issue", seen=seen, **fields))
        assert "The new capability token" in page
        again = operate(admin_client, peer.row, "issue", seen=seen, **fields)
        assert again.status_code == 302
        assert CapabilityToken.objects.count() == number
    Peer.objects.update(revoked_at=datetime.now(UTC))
    seen = CapabilityToken.objects.latest("created_at").pk
    refused = operate(admin_client, peer.row, "issue", seen=seen, **fields)
    assert "The peer is revoked" in shown(refused)
    assert CapabilityToken.objects.count() == 2
    assert AuditRecord.objects.filter(action="key.made").count() == 2


def shown(response: Any) -> str:
    """Return the page of a response."""
    page: str = response.content.decode()
    return page


def test_the_command_prints_a_token_once(settings: Any) -> None:
    settings.UAMP_FEDERATION_HOST = HOST
    peer, printed = add_peer(), StringIO()
    call_command("capability_token", peer.did, "--json", "--reason", "agreed", stdout=printed)
    document = json.loads(printed.getvalue())
    row = CapabilityToken.objects.get()
    assert (document["id"], row.audience, row.intents) == (row.pk, [SERVER], ["ask"])
    plain = StringIO()
    call_command("capability_token", peer.did, "--intent", "cancel", stdout=plain)
    assert plain.getvalue().count(".") == 2
    record = AuditRecord.objects.filter(action="key.made").latest("pk")
    assert document["cap_token"] not in record.detail
    for arguments in (["did:web:none.example"], [peer.did, "--hours", "0"]):
        with pytest.raises(CommandError):
            call_command("capability_token", *arguments)
    assert CapabilityToken.objects.count() == 2


@pytest.mark.sampled(1)
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_question_of_ours_carries_the_token_of_its_agent(
    far: Callable[..., Agent], own_peer: Peer, dial: Dial, alice: Person, protocol: str
) -> None:
    Peer.objects.update(asks_need_token=True)
    _, token = capabilities.issue(own_peer, intents=[Intent.ASK], agents=["echo"], hours=1)
    far(protocol, "echo", name="allowed", key=token)
    assert answer_text(question_events(dial, alice, "allowed")) == "hello there"
    far(protocol, "echo", name="bare")
    error = question_events(dial, alice, "bare")[-1]
    assert (error["type"], ReceivedEnvelope.objects.filter(intent="ask").count()) == (
        "response.error",
        1,
    )


DEMAND = """
from agents_app.models import Agent
from federation_app.models import Peer
Agent.objects.create(name="talker", is_public=True, options={"script": "echo"})
Peer.objects.update(asks_need_token=True)
"""
REVOKE = """
from federation_app.terms import capabilities
from federation_app.models import CapabilityToken
print(capabilities.revoke(CapabilityToken.objects.get()))
"""
ASKS = """
from federation_app.models import ReceivedEnvelope
print(ReceivedEnvelope.objects.filter(intent="ask").count())
"""


def test_a_server_asks_another_with_the_token_that_it_was_given(
    other: OtherServer, dial: Dial, alice: Person
) -> None:
    """An operator there issues it for this server, and one here stores it with the agent."""
    other.product.run(DEMAND)
    alice.user.user_permissions.add(Permission.objects.get(codename="change_peer_trust"))
    owner = User.objects.get(pk=alice.user.pk)
    values = {
        "name": "far",
        "kind": "remote",
        "protocol": "envelope",
        "url": other.product.url,
        "model": f"{OTHER}:agents:talker",
    }
    agent = editing.make(values, owner=owner)
    assert question_events(dial, alice, "far")[-1]["type"] == "response.error"
    token = other.product.manage("capability_token", SERVER, "--agent", "talker").strip()
    editing.change(agent, {"key": token})
    assert token not in Agent.objects.get(pk=agent.pk).secret
    assert answer_text(question_events(dial, alice, "far")) == "hello there"
    assert other.product.run(REVOKE).strip() == "True"
    error = question_events(dial, alice, "far")[-1]["error"]
    assert "does not accept its key" in error["message"], error
    assert other.product.run(ASKS).strip() == "1"
