"""Streams whose readers acknowledge nothing: what all of them cost a process."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from django.db import OperationalError

from federation_app.exchange import admission, receiver, standing, windowed
from federation_app.models import EnvelopeStream
from federation_app.peers import registry
from tests.client import wait_until
from tests.federation_app.peer import SERVER, ForeignPeer, Records
from tests.federation_app.test_websocket import LONG
from tests.live_server import quick_agent

if TYPE_CHECKING:
    from collections.abc import Collection

    from tests.conftest import ServerAddress

pytestmark = pytest.mark.django_db(transaction=True)


def test_full_windows_read_their_rows_together(
    federated: ServerAddress, peer: ForeignPeer, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads: list[set[int]] = []
    checks: list[set[int]] = []
    looks = 0
    acknowledged, accepted = admission.acknowledged, registry.accepted

    def counted(stream_pks: set[int]) -> dict[int, int]:
        reads.append(set(stream_pks))
        return acknowledged(stream_pks)

    def checked(peers: Collection[int]) -> set[int]:
        if isinstance(peers, set):
            # Not by the check of answers, which is another one.
            checks.append(peers)
        return accepted(peers)

    def looked() -> list[windowed.WindowedStream]:
        nonlocal looks
        looks += 1
        return windowed.all_open()

    monkeypatch.setattr(admission, "acknowledged", counted)
    monkeypatch.setattr(registry, "accepted", checked)
    monkeypatch.setattr(standing, "all_open", looked)
    # As if every acknowledgement reached another process.
    monkeypatch.setattr(receiver, "open_streams", lambda _pk: [])
    quick_agent("talker", "echo", delay=0.005)
    to = [f"{SERVER}:agents:talker"]
    names = [f"str-{n}" for n in range(4)]
    with Records(federated.ws) as records:
        for name in names:
            records.send(peer.envelope(content=LONG, to=to, delta_window=1, stream_id=name))
        assert {records.receive()["stream_id"] for _ in names} == set(names)
        pks = set(EnvelopeStream.objects.values_list("pk", flat=True))
        wait_until(lambda: pks in reads)
        reads.clear()
        wait_until(lambda: len(reads) == 3)
        assert reads == [pks] * 3
        wait_until(lambda: len(checks) > 1)
        assert checks == [{peer.row.pk}] * len(checks)
        assert len(checks) <= looks
        for name in names:
            records.send(peer.envelope("progress", json.dumps({"ack": 0}), stream_id=name))
        seconds = [records.receive() for _ in names]
    assert {(record["stream_id"], record["delta_seq"]) for record in seconds} == {
        (name, 1) for name in names
    }


def test_a_read_that_fails_is_repeated(
    federated: ServerAddress, peer: ForeignPeer, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads: list[set[int]] = []
    acknowledged = admission.acknowledged

    def failing(stream_pks: set[int]) -> dict[int, int]:
        reads.append(set(stream_pks))
        if len(reads) == 1:
            raise OperationalError("the database restarts")
        return acknowledged(stream_pks)

    monkeypatch.setattr(admission, "acknowledged", failing)
    monkeypatch.setattr(receiver, "open_streams", lambda _pk: [])
    quick_agent("talker", "echo", delay=0.005)
    with Records(federated.ws) as records:
        to = [f"{SERVER}:agents:talker"]
        records.send(peer.envelope(content=LONG, to=to, delta_window=1, stream_id="str-1"))
        assert records.receive()["delta_seq"] == 0
        wait_until(lambda: len(reads) > 1)
        records.send(peer.envelope("progress", json.dumps({"ack": 0}), stream_id="str-1"))
        assert records.receive()["delta_seq"] == 1
