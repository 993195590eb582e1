"""The client process of a chat that people join, one at a time and evenly over some seconds.

`python -m benchmarks.clients.joins` reads one line of JSON (see `JoinOrder`) and prints lines:
`begin` and `end` mark the measured time, and the last line is the result as JSON.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import httpx

from benchmarks.clients.rooms import Reader, open_session
from benchmarks.clients.turns import Order, allow_many_sockets, quantiles, say

if TYPE_CHECKING:
    from collections.abc import Sequence

QUIET_SECONDS = 1.0


@dataclass(frozen=True, kw_only=True)
class JoinOrder:
    """The people who join `chat`: user name, port and key of each.

    The owner of the chat adds each over REST at the first port; then the person opens a session.
    """

    chat: str
    people: Sequence[tuple[str, int, str]]
    owner: tuple[int, str]
    seconds: float


async def run(order: JoinOrder) -> None:
    """Carry out an order."""
    port, key = order.owner
    add_seconds: list[float] = []
    open_seconds: list[float] = []
    readers: list[Reader] = []
    say("begin")
    async with httpx.AsyncClient(
        base_url=f"http://127.0.0.1:{port}/api/v1/",
        headers={"Authorization": f"Bearer {key}"},
        timeout=60,
    ) as owner:

        async def join(number: int, username: str, own_port: int, own_key: str) -> None:
            began = time.perf_counter()
            answer = await owner.post(f"chats/{order.chat}/participants", json={"user": username})
            answer.raise_for_status()
            done = time.perf_counter()
            add_seconds.append(done - began)
            session_order = Order(port=own_port, token=own_key, session={"chat": order.chat})
            readers.append(await open_session(Reader, session_order, number))
            open_seconds.append(time.perf_counter() - done)

        async with asyncio.TaskGroup() as joining:
            for number, person in enumerate(order.people):
                joining.create_task(join(number, *person))
                await asyncio.sleep(order.seconds / len(order.people))
    await asyncio.sleep(QUIET_SECONDS)
    say("end")
    result: dict[str, Any] = {
        "added_ms": quantiles(add_seconds),
        "opened_ms": quantiles(open_seconds),
        "bytes": sum(reader.bytes for reader in readers),
    }
    await asyncio.to_thread(sys.stdin.readline)
    for reader in readers:
        reader.close()
    say(json.dumps(result))


def main() -> None:
    """Read the order and carry it out."""
    allow_many_sockets()
    asyncio.run(run(JoinOrder(**json.loads(sys.stdin.readline()))))


if __name__ == "__main__":
    main()
