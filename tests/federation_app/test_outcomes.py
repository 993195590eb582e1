"""Envelopes with an effect: a repeat finds it, waits for it, or carries it out itself."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from django.utils import timezone

from chat_app.models import Message
from federation_app.envelope.members.reading import envelope_of as read
from federation_app.exchange import outcomes
from federation_app.models import ReceivedEnvelope
from sessions_app.models import Response
from tests.client import wait_until
from tests.federation_app.foreign_guests import accept, envelope_of, invited, message
from tests.federation_app.peer import SERVER, ForeignPeer, Records, add_peer, text_of
from tests.federation_app.test_websocket import error_of
from tests.live_server import shared_chat
from tests.sessions_app.billing.paid_agents import clean, earned, priced, rich, token_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from agents_app.models import Agent
    from tests.conftest import ServerAddress
    from tests.live_server import Person

pytestmark = pytest.mark.django_db(transaction=True)
DID = f"{SERVER}:agents:seller"


@pytest.fixture
def seller() -> Agent:
    """Return an agent that is paid for each answer."""
    return priced("seller", per_answer="0.25")


def received(peer: ForeignPeer, envelope: Any, *, seconds_ago: float = 0) -> ReceivedEnvelope:
    """Leave the row of a process that has received an envelope, and has not carried it out."""
    return ReceivedEnvelope.objects.create(
        peer=peer.row,
        envelope_id=read(envelope).id,
        sha256=read(envelope).sha256,
        intent=envelope["intent"],
        signed_at=timezone.now(),
        created_at=timezone.now() - timedelta(seconds=seconds_ago),
        is_done=False,
    )


def confirm_of(peer: ForeignPeer, person: Person, to: str = DID) -> Any:
    """Return the `confirm` of a payment that suffices."""
    payment = {"scheme": "token", "token": token_of(person)}
    content = json.dumps({"payment": payment})
    return peer.envelope("confirm", content, to=[to], stream_id="str-1")


def test_a_payment_is_made_by_a_repeat_when_the_process_that_received_it_has_died(
    federated: ServerAddress, alice: Person, seller: Agent
) -> None:
    peer = add_peer("payer.example", user=rich(alice).user)
    with Records(federated.ws) as records:
        records.send(peer.envelope(content="hello there", to=[DID], stream_id="str-1"))
        records.receive()
        confirm = confirm_of(peer, alice)
        received(peer, confirm, seconds_ago=61)
        records.send(confirm)
        assert text_of(records.until("done", "error")) == "hello there"
        # Now its effect is here.
        records.send(confirm)
        records.send(confirm_of(peer, alice))
        assert error_of(records.receive())["detail"] == "payment_not_due"
    wait_until(lambda: earned(seller) == "0.25")
    assert clean()


def test_a_payment_that_a_dead_process_made_is_not_refused_afterwards(
    federated: ServerAddress, alice: Person, seller: Agent
) -> None:
    peer = add_peer("payer.example", user=rich(alice).user)
    with Records(federated.ws) as records:
        records.send(peer.envelope(content="hello there", to=[DID], stream_id="str-1"))
        records.receive()
        confirm = confirm_of(peer, alice)
        records.send(confirm)
        records.until("done")
        rows = ReceivedEnvelope.objects.filter(intent="confirm")
        long_ago = timezone.now() - timedelta(seconds=61)
        assert rows.update(is_done=False, created_at=long_ago) == 1

        records.send(confirm)

        wait_until(lambda: rows.get().is_done)
    assert earned(seller) == "0.25"
    assert clean()


def test_a_repeat_of_a_payment_under_way_is_to_be_sent_again(
    federated: ServerAddress, alice: Person, seller: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outcomes, "WAIT_SECONDS", 0.2)
    peer = add_peer("payer.example", user=rich(alice).user)
    with Records(federated.ws) as records:
        records.send(peer.envelope(to=[DID], stream_id="str-1"))
        records.receive()
        confirm = confirm_of(peer, alice)
        row = received(peer, confirm)
        records.send(confirm)
        assert error_of(records.receive())["code"] == "5.04"
        # The one that was under way is refused, and the next one pays.
        row.delete()
        records.send(confirm)
        records.until("done")
    wait_until(lambda: earned(seller) == "0.25")


def test_a_payment_is_sent_to_the_name_that_was_asked(
    federated: ServerAddress, alice: Person, seller: Agent
) -> None:
    other = f"{SERVER}:agents:echo"
    peer = add_peer("payer.example", user=rich(alice).user)
    with Records(federated.ws) as records:
        records.send(peer.envelope(to=[DID], stream_id="str-1"))
        records.receive()
        records.send(confirm_of(peer, alice, to=other))
        error = error_of(records.receive())
    assert (error["code"], error["detail"]) == ("4.09", "to")
    assert not ReceivedEnvelope.objects.filter(intent="confirm").exists()
    assert Response.objects.get().status not in {"cancelled", "completed"}
    assert earned(seller) == "0"


def test_words_of_a_guest_are_stored_by_a_repeat_when_the_first_process_has_died(
    peer: ForeignPeer, tell: Callable[..., tuple[int, str]], alice: Person
) -> None:
    chat = shared_chat(alice, agents=("echo",))
    accept(peer, tell, invited(chat, alice))
    content = message(chat, "once")
    envelope = envelope_of(peer, "inform", content)
    received(peer, envelope, seconds_ago=61)
    same = {name: value for name, value in envelope.items() if name in {"id", "ts"}}

    assert tell(peer, "inform", content, **same) == (202, "")

    assert list(Message.objects.filter(chat=chat).values_list("content", flat=True)) == ["once"]
    assert ReceivedEnvelope.objects.get(intent="inform").is_done
