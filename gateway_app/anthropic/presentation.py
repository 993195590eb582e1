"""Anthropic's Messages API as pages show it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from gateway_app.anthropic.write import MessagesWriter
from gateway_app.types.example_calls import PostedCall

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gateway_app.types.example_calls import Language
    from gateway_app.types.protocol_presentation import ExampleQuestion, FinishedAnswer

MAX_TOKENS: Final = 1024


class AnthropicPresentation:
    """The Messages API as pages show it."""

    key: Final = "anthropic"
    label: Final = "Messages"
    title: Final = "Anthropic Messages"

    def addresses(self, base: str) -> dict[str, str]:
        """Return the address of messages, and the base URL for Anthropic's SDKs."""
        return {"messages": f"{base}/v1/messages", "base_url": base}

    def examples(self, question: ExampleQuestion) -> dict[Language, str]:
        """Return a streamed message; a header names the chat, if any."""
        headers = {"X-Chat-ID": question.chat_id} if question.chat_id else {}
        url = f"{question.base}/v1/messages"
        return PostedCall(url=url, body=_body(question), headers=headers).code

    def request_frames(self, question: ExampleQuestion) -> list[Any]:
        """Return the body of the request."""
        return [_body(question)]

    def response_frames(self, answer: FinishedAnswer) -> Iterator[Any]:
        """Yield the events of the stream."""
        stored = answer.stored
        writer = MessagesWriter(
            response_id=stored.id, model=stored.agent, link=answer.link, shows_thoughts=True
        )
        yield writer.begin()
        for event in answer.events:
            yield from writer.feed(event)


def _body(question: ExampleQuestion) -> dict[str, Any]:
    return {
        "model": question.base.rpartition("/")[2],
        "max_tokens": MAX_TOKENS,
        "messages": [{"role": "user", "content": question.text}],
        "stream": True,
    }
