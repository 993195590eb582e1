"""UAMP's own entry on the pages of agents."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import uamp
from gateway_app.types.example_calls import PostedCall, socket_url, websocat

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gateway_app.types.example_calls import Language
    from gateway_app.types.protocol_presentation import ExampleQuestion, FinishedAnswer


class UampPresentation:
    """The native protocol as pages show it."""

    key: Final = "uamp"
    label: Final = "UAMP"
    title: Final = "Universal Agentic Message Protocol"

    def addresses(self, base: str) -> dict[str, str]:
        """Return the addresses of the socket, the events and the batches."""
        return {
            "websocket": socket_url(f"{base}/uamp"),
            "events": f"{base}/events",
            "event_stream": f"{base}/events/stream",
            "batch": f"{base}/uamp",
            "batch_stream": f"{base}/uamp/stream",
        }

    def examples(self, question: ExampleQuestion) -> dict[Language, str]:
        """Return a batch with a streamed answer, and for the shell a socket."""
        events = self.request_frames(question)
        return {
            **PostedCall(url=f"{question.base}/uamp/stream", body=events).code,
            "Shell": websocat(f"{question.base}/uamp", events, wait_for='"response.done"'),
        }

    def request_frames(self, question: ExampleQuestion) -> list[Any]:
        """Return the events that the client sends."""
        create: dict[str, Any] = {"type": "session.create", "event_id": "1", "uamp_version": "1.0"}
        if question.chat_id:
            create["chat"] = question.chat_id
        return [
            create,
            {"type": "input.text", "event_id": "2", "text": question.text},
            {"type": "response.create", "event_id": "3"},
        ]

    def response_frames(self, answer: FinishedAnswer) -> Iterator[Any]:
        """Yield the events that the server sends."""
        for event in answer.events:
            yield uamp.to_dict(event)
