"""OpenAI's Responses API as pages show it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import uamp
from gateway_app.openai_responses.output import request_echo
from gateway_app.openai_responses.write import ResponseWriter
from gateway_app.types.example_calls import PostedCall

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gateway_app.types.example_calls import Language
    from gateway_app.types.protocol_presentation import ExampleQuestion, FinishedAnswer


class ResponsesPresentation:
    """The Responses API as pages show it."""

    key: Final = "responses"
    label: Final = "Responses"
    title: Final = "OpenAI Responses"

    def addresses(self, base: str) -> dict[str, str]:
        """Return the address of responses, and the base URL for OpenAI's SDKs."""
        return {"responses": f"{base}/v1/responses", "base_url": f"{base}/v1"}

    def examples(self, question: ExampleQuestion) -> dict[Language, str]:
        """Return a streamed response; a header names the chat, if any."""
        headers = {"X-Chat-ID": question.chat_id} if question.chat_id else {}
        url = f"{question.base}/v1/responses"
        return PostedCall(url=url, body=_body(question), headers=headers).code

    def request_frames(self, question: ExampleQuestion) -> list[Any]:
        """Return the body of the request."""
        return [_body(question)]

    def response_frames(self, answer: FinishedAnswer) -> Iterator[Any]:
        """Yield the events of the stream, without the sender's private overrides."""
        stored = answer.stored
        writer = ResponseWriter(
            response_id=stored.id,
            created_at=int(stored.created_at.timestamp()),
            link=answer.link,
            echoed_request={**request_echo(uamp.ResponseCreate(), {}), "model": stored.agent},
        )
        yield from writer.begin()
        for event in answer.events:
            yield from writer.feed(event)


def _body(question: ExampleQuestion) -> dict[str, Any]:
    return {"input": question.text, "stream": True}
