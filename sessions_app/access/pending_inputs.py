"""The inputs that wait for a session's response.create, and their limit of memory.

Counted are a session's inputs, and the bytes of all inputs that wait on a connection, and in this
process for one person or for the visitors of one address. Inputs over HTTP wait in rows
(`services.keep_input`), with the same limits. A turn that is refused drops its inputs; over HTTP
they wait on where the refusal has a `retry_after`, so that the same `response.create` finds them.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

import msgspec
from django.conf import settings
from django.db import InterfaceError, OperationalError

from agents_app.rest.problems import is_out_of_space
from uamp import ErrorCode, RemoteProtocolError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from uamp.events import InputEvent

_of_person: Final[Counter[str]] = Counter()


def size_of(event: InputEvent) -> int:
    """Return the bytes of an input as JSON."""
    return len(msgspec.json.encode(event))


def too_many(message: str = "Too many inputs wait. Send response.create.") -> RemoteProtocolError:
    """Return the refusal of one more input."""
    return RemoteProtocolError(ErrorCode.TOO_MANY_INPUTS, message)


def too_large(limit: int) -> RemoteProtocolError:
    """Return the refusal of an input whose bytes have no room beside those that wait."""
    return too_many(f"The inputs that wait have at most {limit} bytes. Send response.create.")


def may_pass(error: Exception) -> bool:
    """Return whether a refused turn may be accepted later with the same inputs."""
    if isinstance(error, RemoteProtocolError):
        return "retry_after" in (error.details or {})
    return isinstance(error, OperationalError | InterfaceError) or is_out_of_space(error)


class ConnectionBytes:
    """The bytes of the inputs that wait on one connection.

    The tasks of the process's event loop call it: the bytes of a person are counted over all
    connections.
    """

    def __init__(self) -> None:
        self.size = 0

    def take(self, name: str, size: int) -> None:
        """Count bytes of a person (`rates.person`, `rates.visitors`); raises too_many_inputs."""
        for used, limit in (
            (self.size, settings.UAMP_PENDING_BYTES_PER_CONNECTION),
            (_of_person[name], settings.UAMP_PENDING_BYTES_PER_USER),
        ):
            if used + size > limit:
                raise too_large(limit)
        self.size += size
        _of_person[name] += size

    def give_back(self, name: str, size: int) -> None:
        """Forget bytes that were counted."""
        self.size -= size
        _of_person[name] -= size
        if _of_person[name] <= 0:
            del _of_person[name]


class PendingInputs:
    """The inputs of one session on a connection, in the order in which they came.

    The task that takes the client's events adds and takes them; any task of the event loop that
    detaches the session takes the rest.
    """

    def __init__(self, connection: ConnectionBytes, *, most: int) -> None:
        self._connection = connection
        self._most = most
        self._inputs: list[InputEvent] = []
        self._counted: list[tuple[str, int]] = []

    def __len__(self) -> int:
        """Return how many wait."""
        return len(self._inputs)

    def __iter__(self) -> Iterator[InputEvent]:
        """Iterate over them."""
        return iter(self._inputs)

    def add(self, event: InputEvent, name: str) -> None:
        """Keep an input of a person; raises RemoteProtocolError too_many_inputs."""
        if len(self._inputs) >= self._most:
            raise too_many()
        size = size_of(event)
        self._connection.take(name, size)
        self._inputs.append(event)
        self._counted.append((name, size))

    def take(self) -> list[InputEvent]:
        """Return the inputs, and keep none."""
        taken, self._inputs = self._inputs, []
        for name, size in self._counted:
            self._connection.give_back(name, size)
        self._counted = []
        return taken
