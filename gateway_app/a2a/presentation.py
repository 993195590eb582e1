"""A2A as pages show it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from gateway_app.a2a.dialects.v1 import DIALECT
from gateway_app.a2a.tasks.writer import TaskWriter
from gateway_app.types.example_calls import PostedCall

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gateway_app.types.example_calls import Language
    from gateway_app.types.protocol_presentation import ExampleQuestion, FinishedAnswer

CALL_ID: Final = 1


class A2aPresentation:
    """A2A as pages show it."""

    key: Final = "a2a"
    label: Final = "A2A"
    title: Final = "Agent2Agent Protocol"

    def addresses(self, base: str) -> dict[str, str]:
        """Return the addresses of both bindings and of the card."""
        return {
            "jsonrpc": f"{base}/a2a",
            "rest": f"{base}/a2a/rest",
            "card": f"{base}/.well-known/agent-card.json",
        }

    def examples(self, question: ExampleQuestion) -> dict[Language, str]:
        """Return a streamed task of A2A 1.0; a task never joins an existing chat."""
        headers = {"A2A-Version": "1.0"}
        return PostedCall(url=f"{question.base}/a2a", body=_body(question), headers=headers).code

    def request_frames(self, question: ExampleQuestion) -> list[Any]:
        """Return the JSON-RPC call."""
        return [_body(question)]

    def response_frames(self, answer: FinishedAnswer) -> Iterator[Any]:
        """Yield the task and its updates, as in the stream that answers the call."""
        stored = answer.stored
        writer = TaskWriter(stored.id, stored.thread, link=answer.link)
        yield _result(DIALECT.answer(writer.initial_task(stored)))
        for event in answer.events:
            for update in writer.feed([event]):
                yield _result(DIALECT.json.update(update))
        yield _result(DIALECT.json.update(writer.status(stored)))


def _body(question: ExampleQuestion) -> dict[str, Any]:
    return {
        "jsonrpc": "2.0",
        "id": CALL_ID,
        "method": "SendStreamingMessage",
        "params": {
            "message": {
                "messageId": "message-1",
                "role": "ROLE_USER",
                "parts": [{"text": question.text}],
            }
        },
    }


def _result(result: dict[str, Any]) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": CALL_ID, "result": result}
