"""The starting point of an error test, and the table of refused frames."""

from collections.abc import Callable
from dataclasses import dataclass

from pytest_django import Settings

import uamp
from tests.client import Frame, UampClient
from tests.live_server import Dial, Person
from uamp import ErrorCode

LIMITS = uamp.Limits()
KIB = 1024


@dataclass
class Scene:
    """The start of a row's test: alice on a socket, with a session of the echo agent."""

    client: UampClient
    session_id: str
    alice: Person
    bob: Person
    dial: Dial
    settings: Settings


Provoke = Callable[[Scene], str | bytes | Frame]
REFUSED: dict[ErrorCode, Provoke] = {}


def row(code: ErrorCode) -> Callable[[Provoke], Provoke]:
    """Name the row that a function prepares; the function returns the frame that is refused."""

    def keep(provoke: Provoke) -> Provoke:
        REFUSED[code] = provoke
        return provoke

    return keep
