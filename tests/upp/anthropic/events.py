"""Events of the Messages API, and a model on a server that sends them."""

from collections.abc import Sequence
from typing import Any

from tests.upp.wire_server import STREAM_HEAD, Answer, Exchange, serve
from upp import Message, ProviderConfig, StreamEvent, Turn, llm
from upp.providers.anthropic import AnthropicProvider

KEY = "sk-ant-secret"


async def ask(
    answer: Answer, history: Sequence[Message] = (), **options: Any
) -> tuple[Turn, list[StreamEvent]]:
    """Return the turn and the events of a model on a server that answers so."""
    async with serve(answer) as wire:
        config = ProviderConfig(api_version=options.pop("api_version", None))
        provider = AnthropicProvider(base_url=wire.url, api_key=KEY, config=config)
        try:
            result = llm(model=provider("claude"), **options).stream(history, "hi")
            events = [event async for event in result]
            return await result.turn(), events
        finally:
            await provider.aclose()


async def begin(exchange: Exchange, **usage: int) -> None:
    await exchange.send(STREAM_HEAD)
    message = {"id": "msg_1", "type": "message", "role": "assistant", "usage": usage}
    await exchange.event("message_start", message=message)
    await exchange.event("ping")


async def block(exchange: Exchange, index: int, start: dict[str, Any], *deltas: Any) -> None:
    await exchange.event("content_block_start", index=index, content_block=start)
    for delta in deltas:
        await exchange.event("content_block_delta", index=index, delta=delta)
    await exchange.event("content_block_stop", index=index)


def text(piece: str) -> dict[str, str]:
    return {"type": "text_delta", "text": piece}


def json_piece(piece: str) -> dict[str, str]:
    return {"type": "input_json_delta", "partial_json": piece}


async def end(exchange: Exchange, reason: str = "end_turn", **usage: Any) -> None:
    delta = {"stop_reason": reason, "stop_sequence": None}
    await exchange.event("message_delta", delta=delta, usage=usage)
    await exchange.event("message_stop")
