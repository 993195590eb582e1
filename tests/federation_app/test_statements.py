"""The statements that an envelope costs the database, besides the turn that it begins."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import pytest

from signing_app import owner_keys
from tests.federation_app.database_work import counted
from tests.federation_app.peer import ForeignPeer, Records

if TYPE_CHECKING:
    from tests.conftest import ServerAddress

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_question_adds_seven_statements_in_four_calls_to_its_turn(
    federated: ServerAddress, peer: ForeignPeer, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A busy machine may take longer than this for one question.
    monkeypatch.setattr(owner_keys, "FRESH_SECONDS", math.inf)
    work = counted(monkeypatch)
    first = peer.envelope(content="one")
    with Records(federated.ws) as records:
        records.send(first)
        records.until("done")
        work.forget()
        # The peer, its key, the earlier question, two rows, the session, and the response.
        records.send(peer.envelope(content="two", reply_to=first["id"]))
        records.until("done")

    assert len(work.statements) == 7, str(work)
    # The session is found once, and the answer that began here is not read back.
    assert work.calls == ["admit", "remember_question", "record_response", "_signed"], str(work)
