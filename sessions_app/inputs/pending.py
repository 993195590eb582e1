"""Inputs that wait for a session's response.create, and limits on their memory.

The limits cover the inputs of a session, and the bytes of all pending inputs on a connection and,
in this process, of a person or of the visitors from an address. Inputs over HTTP are stored as rows
(`rows.store_input`) with the same limits. A refused turn drops its inputs. Over HTTP they are
kept if the refusal has a `retry_after`, so that the same `response.create` can be repeated.
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
    """Return the size of an input in bytes of JSON."""
    return len(msgspec.json.encode(event))


def too_many(
    message: str = "Too many inputs are pending. Send response.create.",
) -> RemoteProtocolError:
    """Return the error for too many pending inputs."""
    return RemoteProtocolError(ErrorCode.TOO_MANY_INPUTS, message)


def too_large(limit: int) -> RemoteProtocolError:
    """Return the error for an input that would exceed the limit on pending bytes."""
    return too_many(f"Pending inputs may have at most {limit} bytes. Send response.create.")


def may_pass(error: Exception) -> bool:
    """Return whether a refused turn may succeed later with the same inputs."""
    if isinstance(error, RemoteProtocolError):
        return "retry_after" in (error.details or {})
    return isinstance(error, OperationalError | InterfaceError) or is_out_of_space(error)


class ConnectionBytes:
    """The bytes of the inputs pending on one connection.

    Used by tasks of the process's event loop, since a person's bytes are counted across
    connections.
    """

    def __init__(self) -> None:
        self.size = 0

    def take(self, name: str, size: int) -> None:
        """Count bytes for a `rates.person` or `rates.visitors`; raises too_many_inputs."""
        for used, limit in (
            (self.size, settings.UAMP_PENDING_BYTES_PER_CONNECTION),
            (_of_person[name], settings.UAMP_PENDING_BYTES_PER_USER),
        ):
            if used + size > limit:
                raise too_large(limit)
        self.size += size
        _of_person[name] += size

    def give_back(self, name: str, size: int) -> None:
        """Uncount bytes."""
        self.size -= size
        _of_person[name] -= size
        if _of_person[name] <= 0:
            del _of_person[name]


class PendingInputs:
    """The inputs of a session on a connection, in order of arrival.

    The task that handles the client's events adds and takes them; any task of the event loop that
    detaches the session takes the rest.
    """

    def __init__(self, connection: ConnectionBytes, *, limit: int) -> None:
        self._connection = connection
        self._limit = limit
        self._inputs: list[InputEvent] = []
        self._counted: list[tuple[str, int]] = []

    def __len__(self) -> int:
        """Return the number of pending inputs."""
        return len(self._inputs)

    def __iter__(self) -> Iterator[InputEvent]:
        """Iterate over the pending inputs."""
        return iter(self._inputs)

    def add(self, event: InputEvent, name: str) -> None:
        """Add an input of a person; raises RemoteProtocolError too_many_inputs."""
        if len(self._inputs) >= self._limit:
            raise too_many()
        size = size_of(event)
        self._connection.take(name, size)
        self._inputs.append(event)
        self._counted.append((name, size))

    def take(self) -> list[InputEvent]:
        """Remove and return all inputs."""
        inputs, self._inputs = self._inputs, []
        for name, size in self._counted:
            self._connection.give_back(name, size)
        self._counted = []
        return inputs
