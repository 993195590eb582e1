"""Look-ups of names in the system's resolver, which has no time limit of its own.

Each is made by a thread of its own, which is abandoned when the time is over.
"""

import asyncio
import queue
import socket
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress

from agents_app.outbound.rules import Unreachable


def look_up(host: str, port: int, seconds: float) -> Sequence[str]:
    """Return a name's addresses from the system's resolver; raises Unreachable."""
    answers: queue.SimpleQueue[list[str] | Exception] = queue.SimpleQueue()
    _begin_look_up(host, port, answers.put)
    try:
        answer = answers.get(timeout=seconds)
    except queue.Empty:
        raise _no_answer(host) from None
    return _addresses(host, answer)


async def look_up_async(host: str, port: int, seconds: float) -> Sequence[str]:
    """Return a name's addresses like `look_up`, without waiting in a thread.

    A thread of the event loop's pool would be missing to look-ups of other names for as long as a
    name server does not answer.
    """
    loop, answers = asyncio.get_running_loop(), asyncio.Queue[list[str] | Exception]()

    def report(answer: list[str] | Exception) -> None:
        # The loop may have been closed meanwhile.
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(answers.put_nowait, answer)

    _begin_look_up(host, port, report)
    try:
        answer = await asyncio.wait_for(answers.get(), seconds)
    except TimeoutError:
        raise _no_answer(host) from None
    return _addresses(host, answer)


def _begin_look_up(host: str, port: int, report: Callable[[list[str] | Exception], object]) -> None:
    def ask() -> None:
        try:
            rows = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
            report(list(dict.fromkeys(str(address[0]) for *_, address in rows)))
        except (OSError, UnicodeError) as error:
            report(error)

    threading.Thread(target=ask, name="look-up", daemon=True).start()


def _no_answer(host: str) -> Unreachable:
    return Unreachable(f"{host} was not looked up in time")


def _addresses(host: str, answer: list[str] | Exception) -> Sequence[str]:
    if isinstance(answer, Exception):
        raise Unreachable(f"{host} was not found: {answer}") from answer
    return answer
