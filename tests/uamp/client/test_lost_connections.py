"""A client whose connection is cut at every event shows each answer once, whole."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from chat_app.models import Message
from tests.live_server import Person, quick_agent, shared_chat
from tests.uamp.client.cutting_proxy import cutting_proxy
from uamp.client import Client, ConnectionLostError

if TYPE_CHECKING:
    from tests.conftest import ServerAddress
    from uamp.client.connection import TransportName

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.any_database]

WORDS = " ".join(f"w{number}é" for number in range(6))
DOWN, UP = range(1, 14), range(1, 4)


@pytest.mark.parametrize("transport", ["websocket", "sse"])
def test_a_cut_at_every_event_loses_and_doubles_nothing(
    demo: ServerAddress, alice: Person, transport: TransportName
) -> None:
    quick_agent("teller", "echo", delay=0.004)
    chat = shared_chat(alice, agents=("teller",), trigger="always")
    questions = asyncio.run(cut_at_every_event(demo, alice.key, chat.pk, transport))

    stored = Message.objects.filter(chat_id=chat.pk).order_by("seq")
    assert [message.content for message in stored] == [
        text for question in questions for text in (question, question)
    ]


async def cut_at_every_event(
    demo: ServerAddress, key: str, chat_id: str, transport: TransportName
) -> list[str]:
    questions: list[str] = []
    cuts = [("down", at) for at in DOWN]
    if transport == "websocket":
        cuts += [("up", at) for at in UP]
    async with (
        cutting_proxy(demo.port) as proxy,
        Client(proxy.url, key=key, transport=transport) as client,
    ):
        chat = await client.chat(chat_id)
        for direction, at in cuts:
            text = f"{direction} {at} {WORDS}"
            questions.append(text)
            proxy.cut_after(at, "up" if direction == "up" else "down")
            pieces = [piece async for piece in chat.ask(text, seconds=60)]
            assert "".join(piece.text for piece in pieces) == text
            assert not any(piece.restarted for piece in pieces)
            proxy.disarm()
        # Events that come in one piece are cut together, and some pieces end an answer.
        assert proxy.cuts > len(cuts) // 3
        history = [message.content async for message in chat.history()]
        assert history == [text for question in questions for text in (question, question)]
    return questions


def test_a_private_session_resumes_and_a_server_that_stays_away_is_an_error(
    demo: ServerAddress, alice: Person
) -> None:
    quick_agent("teller", "echo", delay=0.004)

    async def talk() -> None:
        async with cutting_proxy(demo.port) as proxy:
            async with Client(proxy.url, key=alice.key, reconnect_seconds=0.2) as client:
                private = await client.agent("teller")
                for at in range(1, 6):
                    proxy.cut_after(at)
                    assert (await private.ask(f"{at} {WORDS}", seconds=60)).text == f"{at} {WORDS}"
                    proxy.disarm()
                proxy.refuse = True
                proxy.cut_after(2)
                with pytest.raises(ConnectionLostError):
                    await private.ask(WORDS)
            with pytest.raises(ConnectionLostError, match="could not be reached"):
                async with Client(proxy.url, key=alice.key) as client:
                    await client.agent("teller")

    asyncio.run(talk())
