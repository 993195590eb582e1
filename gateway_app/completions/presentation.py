"""Chat Completions as pages show it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from gateway_app.completions.write import CompletionWriter
from gateway_app.types.example_calls import PostedCall

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gateway_app.types.example_calls import Language
    from gateway_app.types.protocol_presentation import ExampleQuestion, FinishedAnswer


class CompletionsPresentation:
    """Chat Completions as pages show it."""

    key: Final = "completions"
    label: Final = "Completions"
    title: Final = "OpenAI Chat Completions"

    def addresses(self, base: str) -> dict[str, str]:
        """Return the addresses of calls and models, and the base URL for OpenAI's SDKs."""
        return {
            "completions": f"{base}/chat/completions",
            "base_url": f"{base}/v1",
            "models": f"{base}/v1/models",
        }

    def examples(self, question: ExampleQuestion) -> dict[Language, str]:
        """Return a streamed completion; a header names the chat, if any."""
        headers = {"X-Chat-ID": question.chat_id} if question.chat_id else {}
        url = f"{question.base}/chat/completions"
        return PostedCall(url=url, body=_body(question), headers=headers).code

    def request_frames(self, question: ExampleQuestion) -> list[Any]:
        """Return the body of the request."""
        return [_body(question)]

    def response_frames(self, answer: FinishedAnswer) -> Iterator[Any]:
        """Yield the chunks of the stream."""
        stored = answer.stored
        writer = CompletionWriter(
            response_id=stored.id,
            model=stored.agent,
            created=int(stored.created_at.timestamp()),
            link=answer.link,
        )
        yield msgspec.to_builtins(writer.begin())
        for event in answer.events:
            for chunk in writer.feed(event):
                yield msgspec.to_builtins(chunk)
        if writer.signature is not None:
            yield msgspec.to_builtins(writer.signature)


def _body(question: ExampleQuestion) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": question.text}], "stream": True}
