"""AG-UI as pages show it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from gateway_app.ag_ui.read import RunInput
from gateway_app.ag_ui.write import RunWriter
from gateway_app.types.example_calls import PostedCall
from uamp.shared_state import VersionedState

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gateway_app.types.example_calls import Language
    from gateway_app.types.protocol_presentation import ExampleQuestion, FinishedAnswer


class AgUiPresentation:
    """AG-UI as pages show it."""

    key: Final = "ag-ui"
    label: Final = "AG-UI"
    title: Final = "Agent-User Interaction Protocol"

    def addresses(self, base: str) -> dict[str, str]:
        """Return the address of runs."""
        return {"agui": f"{base}/agui"}

    def examples(self, question: ExampleQuestion) -> dict[Language, str]:
        """Return a run of a thread; a header names the chat, if any."""
        headers = {"Accept": "text/event-stream"}
        if question.chat_id:
            headers["X-Chat-ID"] = question.chat_id
        return PostedCall(url=f"{question.base}/agui", body=_body(question), headers=headers).code

    def request_frames(self, question: ExampleQuestion) -> list[Any]:
        """Return the input of the run."""
        return [_body(question)]

    def response_frames(self, answer: FinishedAnswer) -> Iterator[Any]:
        """Yield the events of the run, whose id is that of the response."""
        stored = answer.stored
        writer = RunWriter(RunInput(thread_id=stored.thread, run_id=stored.id))
        yield from writer.begin(VersionedState())
        for event in answer.events:
            yield from writer.feed(event)


def _body(question: ExampleQuestion) -> dict[str, Any]:
    return {
        "threadId": "thread-1",
        "runId": "run-1",
        "messages": [{"id": "message-1", "role": "user", "content": question.text}],
        "tools": [],
        "context": [],
        "state": {},
        "forwardedProps": {},
    }
