"""Answers of each kind, taken over UAMP and from an export, verified by three verifiers."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

import pytest

from agents_app.providers import scripts
from payments_app.spending import approvals
from tests import factories
from tests.chat_app.conversation.joining import joined
from tests.client import TERMINAL
from tests.live_server import shared_chat
from tests.sessions_app.billing.paid_agents import priced, rich, usd
from tests.sessions_app.response.signatures.exports import browser_result, exported, verified
from tests.sessions_app.response.signatures.signed_answers import history, keys_of
from tests.uamp.signatures.node_crypto import verified_by_node
from uamp.signatures import check_answer
from upp.providers.scripted import Pause, Step, Text

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from pathlib import Path

    import httpx

    from agents_app.selectors import AgentSpec
    from tests.client import Frame, UampClient
    from tests.live_server import Dial, Person
    from upp import LLMRequest


async def writer(_agent: AgentSpec, _request: LLMRequest) -> AsyncGenerator[Step, None]:
    yield Text("Once upon a time")
    yield Pause(60)


class WireReader:
    """Collects the messages and the ends of responses that a socket receives."""

    def __init__(self, client: UampClient) -> None:
        self._client = client
        self.messages: dict[str, Frame] = {}
        self.ends: dict[str, Frame] = {}

    def until(self, *types: str) -> Frame:
        """Read to the next frame of one of these types, and return it."""
        frames = self._client.until(*types)
        for frame in frames:
            if frame["type"] in TERMINAL:
                self.ends[frame["response_id"]] = frame
            elif frame["type"] == "message.created":
                self.messages[frame["message"]["id"]] = frame["message"]
        return frames[-1]

    def answer(self) -> Frame:
        """Read to the message of the next answer, and return it."""
        while True:
            message: Frame = self.until("message.created")["message"]
            if message["sender_kind"] == "agent":
                return message

    def signed(self) -> list[tuple[str, Frame]]:
        """Return the answers by id, each with the signature of its end."""
        return [
            (message_id, {**message, "signature": self.ends[message["response_id"]]["signature"]})
            for message_id, message in self.messages.items()
            if message.get("response_id")
        ]


@pytest.fixture
def wire(
    dial: Dial, alice: Person, bob: Person, monkeypatch: pytest.MonkeyPatch
) -> tuple[str, WireReader]:
    """Return a chat with an answer of each kind, and what its asker received."""
    monkeypatch.setitem(scripts.SCRIPTS, "writer", writer)
    paid = priced("novelist", "writer", per_answer="0.25")
    approvals.approve(rich(alice).user.pk, paid.pk, usd("1"))
    chat = shared_chat(alice, bob, agents=("studio", "echo", "novelist"))
    client = joined(dial, alice, chat)
    reader = WireReader(client)
    # A picture, which another agent made.
    picture = base64.b64encode(factories.png(60, 40)).decode()
    client.send("input.image", image=picture, format="png")
    client.ask("@studio black and white, please")
    media = reader.answer()
    assert "image" in [item["type"] for item in media["content_items"]]
    # In a thread.
    client.ask("@echo in a thread", thread=media["id"])
    assert reader.answer()["thread"] == media["id"]
    # Regenerated.
    client.ask("@echo once more")
    first = reader.answer()
    client.send("response.create", replaces=first["id"])
    assert reader.answer()["version_of"] == first["id"]
    # Stopped, and paid.
    client.ask("@novelist write")
    reader.until("response.delta")
    client.send("response.cancel")
    assert reader.answer()["status"] == "cancelled"
    return chat.pk, reader


@pytest.mark.usefixtures("celery_worker_thread")
def test_answers_of_each_kind_are_verified_over_the_wire(
    web: httpx.Client, alice: Person, wire: tuple[str, WireReader], tmp_path: Path
) -> None:
    chat_id, reader = wire
    file = exported(web, alice, chat_id, tmp_path)
    keys = keys_of(web)
    code, output = verified(file, keys)
    # The export has the current version of the regenerated answer.
    assert (code, "The answers: 4 as signed." in output) == (0, True), output
    assert "not changed" in output
    documents: list[dict[str, Any]] = []
    for message_id, answer in reader.signed():
        check = check_answer(answer, keys, chat_id=chat_id)
        assert check.state == "valid", (message_id, check.detail)
        assert check.claims is not None
        question = reader.messages[str(check.claims.request_id)]
        asked = check_answer(answer, keys, chat_id=chat_id, question=question)
        assert asked.request == "same"
        documents.append(
            {
                "kind": "answer",
                "message": answer,
                "question": question,
                "keys": keys,
                "chat_id": chat_id,
            }
        )
    changed = [
        {**document, "message": {**document["message"], "content": "Changed"}}
        for document in documents
    ]
    assert verified_by_node([*documents, *changed]) == [True] * 5 + [False] * 5
    # The modules of the page find in the export what the command finds.
    # A page has messages from REST and from the socket.
    forms = [history(web, alice, chat_id), [*reader.messages.values()]]
    shown = [message for form in forms for message in form]
    result = browser_result(file.read_text(), keys, shown)
    assert (result["verdict"], result["problems"], result["answers"], result["headState"]) == (
        "unchanged",
        [],
        {"valid": 4},
        "signed",
    )
    assert (result["unverified"], result["absent"], result["unsigned"]) == (0, 0, 0)
    for form in forms:
        cut = [
            {**message, "content_items": message["content_items"][1:]}
            for message in form
            if message.get("content_items")
        ]
        result = browser_result(file.read_text(), keys, cut)
        problems = {(problem["kind"], problem["messageId"]) for problem in result["problems"]}
        assert problems == {("message_changed", message["id"]) for message in cut}
        assert cut
