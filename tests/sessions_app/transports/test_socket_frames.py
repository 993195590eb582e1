"""A socket receives the same frames however the server writes them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.client import UampClient, output_text
from uamp_project.servers.uvicorn_protocols import WebSocketProtocol

if TYPE_CHECKING:
    from tests.conftest import ServerAddress

pytestmark = pytest.mark.any_database

TEXT = " ".join(f"wörd{number}" for number in range(200))


@pytest.mark.usefixtures("brisk")
@pytest.mark.parametrize("joins_frames", [True, False])
def test_an_answer_arrives_whole_and_in_order(
    demo: ServerAddress,
    monkeypatch: pytest.MonkeyPatch,
    joins_frames: bool,  # noqa: FBT001 a case
) -> None:
    monkeypatch.setattr(WebSocketProtocol, "joins_frames", joins_frames)
    deltas, texts = {}, {}
    for agent, question in (("echo", TEXT), ("slow", "Count")):
        with UampClient(f"{demo.ws}/uamp") as client:
            client.create_session(agent=agent)
            frames = client.answer(question)
        deltas[agent] = [
            frame["delta"]["text"] for frame in frames if frame["type"] == "response.delta"
        ]
        texts[agent] = output_text(frames[-1])
    assert {agent: "".join(pieces) for agent, pieces in deltas.items()} == texts
    assert texts["echo"] == TEXT
    # It takes two seconds: longer than any pause in which deltas are joined.
    assert len(deltas["slow"]) > 1
