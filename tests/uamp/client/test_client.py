"""A program uses a chat, files and REST through the client, also where answers are cut."""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING

import pytest

from chat_app.models import Content, Message
from tests.live_server import Person, shared_chat
from tests.sessions_app.billing.paid_agents import clean, earned, priced, rich
from tests.uamp.client.cutting_proxy import cutting_proxy
from uamp.client import (
    Client,
    ExportCutError,
    NoAnswerError,
    PaymentRefusedError,
    PaymentRequiredError,
    SyncClient,
    TimedOutError,
    UnauthorizedError,
)

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import ServerAddress
    from uamp.client.connection import TransportName
    from uamp.events import PaymentRequired

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.any_database]


@pytest.mark.parametrize("transport", ["websocket", "sse"])
def test_answers_tools_payments_and_refusals(
    demo: ServerAddress, alice: Person, bob: Person, transport: TransportName
) -> None:
    chat_id = shared_chat(alice, bob, agents=("echo", "slow")).pk
    agent = priced("paid", per_answer="0.25")
    rich(alice)
    amounts: list[str] = []

    def agree(required: PaymentRequired) -> bool:
        amounts.append(required.requirements.amount)
        return len(amounts) == 1

    async def talk() -> None:
        async with Client(
            demo.http, key=alice.key, transport=transport, pay_up_to="0.3", agree=agree
        ) as client:
            chat = await client.chat(chat_id)
            events = chat.events(seconds=60)
            pieces = [piece async for piece in chat.ask("@echo hello")]
            assert "".join(piece.text for piece in pieces) == "hello"
            assert {piece.agent for piece in pieces} == {"echo"}
            types = [type(await anext(events)).__name__ for _ in range(4)]
            assert "ResponseCreated" in types
            with pytest.raises(NoAnswerError):
                await chat.ask("no agent")
            both = chat.ask("@echo @slow wait", seconds=60)
            async for piece in both:
                if piece.agent == "slow" and piece.text:
                    await both.cancel()
                    break
            assert {answer.agent: answer.status for answer in both.answers} == {
                "echo": "completed",
                "slow": "cancelled",
            }
            # The limit pays the first, `agree` the second; the third it refuses.
            private = await client.agent("paid")
            assert (await private.ask("one")).text == "one"
            assert (await private.ask("two")).text == "two"
            with pytest.raises(PaymentRequiredError, match=r"0\.25 USD"):
                await private.ask("three")
            assert client.transport == transport
        async with Client(demo.http, key=bob.key, transport=transport, pay_up_to="1") as poor:
            private = await poor.agent("paid")
            with pytest.raises(PaymentRefusedError):
                await private.ask("without money")
        async with Client(demo.http, key="uak_missing", transport=transport) as stranger:
            with pytest.raises(UnauthorizedError):
                await stranger.agent("echo")

    asyncio.run(talk())
    assert amounts == ["0.25", "0.25"]
    assert earned(agent) == "0.5"
    assert clean()


def test_without_asyncio_a_program_waits_no_longer_than_it_said(
    demo: ServerAddress, alice: Person
) -> None:
    chat_id = shared_chat(alice, agents=("echo",)).pk
    with SyncClient(demo.http, key=alice.key) as client:
        chat = client.chat(chat_id)
        assert "".join(piece.text for piece in chat.ask("@echo hello there")) == "hello there"
        assert chat.ask("@echo again").answer().text == "again"
        assert [message.content for message in chat.history()] == [
            *("@echo hello there", "hello there", "@echo again", "again")
        ]
        with pytest.raises(TimedOutError):
            next(chat.events(seconds=0.1))
        assert client.me().username == "alice"


def names_in(folder: Path) -> list[str]:
    """Return the names of the files of a folder."""
    return sorted(path.name for path in folder.iterdir())


def test_a_cut_rest_request_is_sent_once_resumed_or_fails(
    demo: ServerAddress, alice: Person, tmp_path: Path
) -> None:
    chat_id = shared_chat(alice).pk
    content = os.urandom(300_000).hex().encode()
    (tmp_path / "up.txt").write_bytes(content)

    async def use() -> None:
        async with cutting_proxy(demo.port) as proxy, Client(proxy.url, key=alice.key) as client:
            # The server has stored the message, and its answer is lost.
            proxy.cut_after(1, unit="byte")
            message = await client.send_message(chat_id, "once")
            assert (message.content, proxy.cuts) == ("once", 1)
            await client.me()
            # The middle of the second part is lost, then the answer to the last one.
            (tmp_path / "large.txt").write_bytes(content * 4)
            proxy.cut_after(1_500_000, "up", unit="byte")
            large = await client.upload(tmp_path / "large.txt")
            assert (large.size_bytes, proxy.cuts) == (len(content) * 4, 2)
            (tmp_path / "large.txt").unlink()
            proxy.cut_after(1, unit="byte")
            stored = await client.upload(tmp_path / "up.txt")
            assert proxy.cuts == 3
            await client.me()
            proxy.cut_after(200_000, unit="byte")
            await client.download(stored.url, tmp_path / "down.txt")
            assert (proxy.cuts, (tmp_path / "down.txt").read_bytes()) == (4, content)
            for _ in range(40):
                await client.send_message(chat_id, "many words " * 20)
            proxy.cut_after(9_000, unit="byte")
            with pytest.raises(ExportCutError):
                await client.export(chat_id, tmp_path / "chat.ndjson")
            assert names_in(tmp_path) == ["down.txt", "up.txt"]
            export = await client.export(chat_id, tmp_path / "chat.ndjson")
            assert export.count == 41

    asyncio.run(use())
    assert Message.objects.filter(content="once").count() == 1
    assert sorted(Content.objects.values_list("size_bytes", flat=True)) == [600_000, 2_400_000]
