"""OpenAI's clients of the Realtime API with sound: `realtime_sound_client.py ORIGIN KEY AGENT`."""

import array
import asyncio
import base64
import json
import math
import sys
from typing import Any

from agents.realtime import (  # type: ignore[import-not-found]  # not in .venv
    OpenAIRealtimeWebSocketModel,
    RealtimeAgent,
    RealtimeRunner,
)
from openai import AsyncOpenAI  # type: ignore[import-not-found]  # not in .venv

ORIGIN, KEY, AGENT = sys.argv[1:4]
SOCKETS = ORIGIN.replace("http", "ws", 1)
TONE = array.array(
    "h", (int(12_000 * math.sin(math.tau * 440 * n / 24_000)) for n in range(4_800))
).tobytes()
SILENCE = bytes(48_000)


def client() -> Any:
    """Return the client."""
    return AsyncOpenAI(base_url=f"{ORIGIN}/v1", websocket_base_url=f"{SOCKETS}/v1", api_key=KEY)


async def append(connection: Any, samples: bytes) -> None:
    """Append samples in pieces of 50 ms, as a microphone does."""
    for at in range(0, len(samples), 2_400):
        piece = base64.b64encode(samples[at : at + 2_400]).decode()
        await connection.input_audio_buffer.append(audio=piece)


async def response_summary(connection: Any, sound: str) -> dict[str, Any]:
    """Return the events up to the end of a response."""
    summary: dict[str, Any] = {"bytes": 0, "words": "", "types": []}
    async for event in connection:
        summary["types"].append(event.type)
        if event.type == "error":
            raise RuntimeError(event.error.message)
        if event.type == f"{sound}.delta":
            summary["bytes"] += len(base64.b64decode(event.delta))
        elif event.type == f"{sound}_transcript.delta":
            summary["words"] += event.delta
        elif event.type.endswith("input_audio_transcription.completed"):
            summary["said"] = event.transcript
        elif event.type == "response.done":
            summary["types"] = list(dict.fromkeys(summary["types"]))
            summary["usage"] = event.response.usage.output_token_details.audio_tokens
            return summary
    raise RuntimeError("the socket closed")


async def ga() -> dict[str, Any]:
    """Commit a sound, then speak until the server finds the end."""
    async with client().realtime.connect(model=AGENT) as connection:
        quiet = {"input": {"turn_detection": None}, "output": {"voice": "marin"}}
        await connection.session.update(session={"type": "realtime", "audio": quiet})
        await append(connection, TONE)
        await connection.input_audio_buffer.commit()
        await connection.response.create()
        committed = await response_summary(connection, "response.output_audio")
        listening = {"input": {"turn_detection": {"type": "server_vad"}}}
        await connection.session.update(session={"type": "realtime", "audio": listening})
        await append(connection, TONE + SILENCE)
        spoken = await response_summary(connection, "response.output_audio")
    return {"committed": committed, "spoken": spoken}


async def beta() -> dict[str, Any]:
    """Commit a sound in the dialect of the beta."""
    async with client().beta.realtime.connect(model=AGENT) as connection:
        await connection.session.update(session={"turn_detection": None, "voice": "alloy"})
        await append(connection, TONE)
        await connection.input_audio_buffer.commit()
        await connection.response.create()
        return await response_summary(connection, "response.audio")


async def agents() -> dict[str, Any]:
    """Speak with the Realtime agents of OpenAI's Agents SDK."""
    runner = RealtimeRunner(
        starting_agent=RealtimeAgent(name=AGENT, instructions="Be brief."),
        model=OpenAIRealtimeWebSocketModel(),
        config={"model_settings": {"model_name": AGENT, "output_modalities": ["audio"]}},
    )
    settings = {"url": f"{SOCKETS}/v1/realtime?model={AGENT}", "api_key": KEY}
    sound = b""
    async with await runner.run(model_config=settings) as session:
        await session.send_audio(TONE + SILENCE)
        async for event in session:
            if event.type == "error":
                return {"error": str(event.error)}
            if event.type == "audio":
                sound += event.audio.data
            if event.type == "agent_end":
                break
        transcripts = [
            (item.role, part.transcript)
            for item in session._history
            if item.type == "message"
            for part in item.content
        ]
    return {"bytes": len(sound), "said": transcripts}


async def main() -> dict[str, Any]:
    """Do all of it."""
    return {"ga": await ga(), "beta": await beta(), "agents": await agents()}


print(json.dumps(asyncio.run(main())))  # noqa: T201 its result
