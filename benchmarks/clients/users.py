"""The client process of people who use their browsers: they read, write, type and ask.

`python -m benchmarks.clients.users` reads one line of JSON (see `UserOrder`) and prints lines:
`begin` and `end` mark the measured time, and the last line is the result as JSON. What each person
does, and when, is drawn from a seed, so that all runs play the same day.
"""

from __future__ import annotations

import asyncio
import json
import random
import re
import sys
import time
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

import httpx

from benchmarks.clients.rooms import open_session
from benchmarks.clients.turns import Order, Socket, allow_many_sockets, quantiles, say

if TYPE_CHECKING:
    from collections.abc import Sequence

TYPING_SECONDS = 3.0
OPENING_AT_ONCE = 16
# Each text begins with the time when it was sent, on the clock of this process.
SENT_AT = re.compile(rb"sent=([0-9]+)")
WORDS = " ".join(f"word{number:03}" for number in range(200))


@dataclass(frozen=True, kw_only=True)
class Habits:
    """The habits of a person whose page is open; the times are means, in seconds.

    Every `ask_every`-th message asks the agent of the room, whose answer has 200 words.
    """

    write_seconds: float = 60.0
    read_seconds: float = 60.0
    ask_every: int = 5


@dataclass(frozen=True, kw_only=True)
class UserOrder:
    """The people: port, key and chat of each. The measured time begins after `warm` seconds."""

    people: Sequence[tuple[int, str, str]]
    agent: str
    habits: Habits = field(default_factory=Habits)
    warm: float = 5.0
    seconds: float = 60.0


@dataclass(frozen=True, kw_only=True)
class Delays:
    """Seconds that people waited, of each event in the measured time."""

    stored: list[float] = field(default_factory=list)
    """Until the writer's own message came back."""
    shown: list[float] = field(default_factory=list)
    """Until another member had the message."""
    first_words: list[float] = field(default_factory=list)
    opened: list[float] = field(default_factory=list)
    """Until a page of history had been read."""


class UserPage(Socket):
    """The socket of one page, which has one chat open and watches the others."""

    def __init__(self, order: Order, number: int, delays: Delays) -> None:
        super().__init__(order, number)
        self.delays = delays
        self.events = 0
        self._event_ids = 0
        self.last_message = ""
        self._asked: float = 0.0
        self._sent = b""

    def _event(self, payload: bytearray) -> None:
        self.events += 1
        if payload.startswith(b'{"type":"message.created"'):
            self._message(payload)
        elif payload.startswith(b'{"type":"response.delta"'):
            if self._asked:
                self.delays.first_words.append(time.perf_counter() - self._asked)
                self._asked = 0.0
        elif payload.startswith((b'{"type":"session.error"', b'{"type":"response.error"')):
            raise RuntimeError(payload.decode())
        elif not self.opened.done():
            super()._event(payload)

    def _message(self, payload: bytearray) -> None:
        match = SENT_AT.search(payload)
        # The agent repeats the text at the end of its answer.
        if match is None or b'"role":"user"' not in payload:
            return
        seconds = time.perf_counter() - int(match[1]) / 1e9
        (self.delays.stored if match[1] == self._sent else self.delays.shown).append(seconds)
        self.last_message = json.loads(payload)["message"]["id"]

    def _send(self, event: dict[str, Any]) -> None:
        self._event_ids += 1
        event.setdefault("event_id", f"e{self._number}-{self._event_ids}")
        super()._send(event)

    def watch(self) -> None:
        """Watch the person's chats, as the page does for its list."""
        self._send({"type": "chats.watch"})

    def type(self, *, is_typing: bool) -> None:
        """Begin or stop to type."""
        self._send({"type": "input.typing", "is_typing": is_typing})

    def read(self) -> None:
        """Send the receipt of the newest message."""
        if self.last_message:
            self._send({"type": "message.read", "message_id": self.last_message})

    def write(self, name: str, agent: str) -> None:
        """Send a message, which asks an agent if one is named."""
        now = time.perf_counter()
        self._sent = str(int(now * 1e9)).encode()
        text = f"sent={self._sent.decode()} {WORDS[:120]}"
        if agent:
            text = f"@{agent} sent={self._sent.decode()} {WORDS}"
            self._asked = now
        self._send({"type": "input.text", "event_id": f"i{name}", "text": text})
        self._send({"type": "response.create", "event_id": f"c{name}"})


async def live(page: UserPage, number: int, order: UserOrder, history: httpx.AsyncClient) -> None:
    """Do what a person does, until cancelled."""
    habits = order.habits
    dice = random.Random(number)  # noqa: S311 not a secret

    async def write() -> None:
        message_number = dice.randrange(habits.ask_every)
        while True:
            await asyncio.sleep(dice.expovariate(1 / habits.write_seconds))
            page.type(is_typing=True)
            await asyncio.sleep(TYPING_SECONDS)
            message_number += 1
            page.write(
                f"{number}-{message_number}",
                "" if message_number % habits.ask_every else order.agent,
            )

    async def read() -> None:
        _, key, chat = order.people[number]
        while True:
            await asyncio.sleep(dice.expovariate(1 / habits.read_seconds))
            began = time.perf_counter()
            answer = await history.get(
                f"http://127.0.0.1:{order.people[number][0]}/api/v1/chats/{chat}/messages",
                params={"limit": 50, "order": "desc"},
                headers={"Authorization": f"Bearer {key}"},
            )
            answer.raise_for_status()
            page.delays.opened.append(time.perf_counter() - began)
            page.read()

    async with asyncio.TaskGroup() as doing:
        doing.create_task(write())
        doing.create_task(read())


async def run(order: UserOrder) -> None:
    """Carry out an order."""
    delays = Delays()
    gate = asyncio.Semaphore(OPENING_AT_ONCE)

    def make(session: Order, number: int) -> UserPage:
        return UserPage(session, number, delays)

    async def enter(number: int, port: int, key: str, chat: str) -> UserPage:
        async with gate:
            session = Order(port=port, token=key, session={"chat": chat})
            page: UserPage = await open_session(make, session, number)
            page.watch()
            return page

    pages = await asyncio.gather(*(enter(n, *person) for n, person in enumerate(order.people)))
    async with (
        httpx.AsyncClient(timeout=60, trust_env=False) as history,
        asyncio.timeout(order.warm + order.seconds + 60),
        asyncio.TaskGroup() as day,
    ):
        lives = [
            day.create_task(live(page, number, order, history)) for number, page in enumerate(pages)
        ]
        await asyncio.sleep(order.warm)
        for waits in vars(delays).values():
            waits.clear()
        events = sum(page.events for page in pages)
        say("begin")
        await asyncio.sleep(order.seconds)
        say("end")
        events = sum(page.events for page in pages) - events
        for life in lives:
            life.cancel()
    result: dict[str, Any] = {
        name: {**quantiles(waits), "count": len(waits)} for name, waits in asdict(delays).items()
    }
    # The server's memory is read before the sockets close.
    await asyncio.to_thread(sys.stdin.readline)
    for page in pages:
        page.close()
    say(json.dumps({**result, "events": events}))


def main() -> None:
    """Read the order and carry it out."""
    allow_many_sockets()
    order = json.loads(sys.stdin.readline())
    habits = Habits(**order.pop("habits"))
    asyncio.run(run(UserOrder(habits=habits, **order)))


if __name__ == "__main__":
    main()
