"""Validation against JSON Schemas of clients and MCP servers, with a time limit.

A single keyword can keep a check busy for hours, and a pattern blocks every thread of its process
while it is matched. Schemas that are not known to be cheap are checked in one of a few processes,
which is killed when its time is up.
"""

import re
import sys
from typing import Any

import msgspec

from agents_app.workers.child_limits import limit_memory
from agents_app.workers.child_processes import ChildProcesses, TooSlow, serve
from agents_app.workers.schema_cost import is_cheap

CHECK_SECONDS = 2.0
WAIT_SECONDS = 10.0
"""How long a check waits for a free process."""
# A check produces many messages, each of which may be as long as the value.
_MEMORY_BYTES = 512 * 1024 * 1024
_processes = ChildProcesses("agents_app.workers.schema_checks")


class NoSchemaError(Exception):
    """The schema is invalid, or refers to something outside it."""


class TooMuchWorkError(Exception):
    """The check did not finish within CHECK_SECONDS, or needs too much memory."""


class _Verdict(msgspec.Struct, omit_defaults=True):
    misfit: str | None = None
    is_schema: bool = True
    is_checked: bool = True


def misfit(schema: dict[str, Any], value: Any, *, asker: str) -> str | None:
    """Return the first mismatch and its place, or None if the value is valid.

    `asker` is the owner of the schema; checks of one asker run one after another. Raises
    NoSchemaError and TooMuchWorkError. Blocks for at most WAIT_SECONDS plus CHECK_SECONDS, and for
    a fraction of a second if `is_quick`.
    """
    if is_quick(schema, value):
        return _problem_of(_check(schema, value))
    question = msgspec.json.encode([schema, value])
    try:
        answer = _processes.ask(question, asker=asker, seconds=CHECK_SECONDS, wait=WAIT_SECONDS)
    except TooSlow as error:
        raise TooMuchWorkError from error
    return _problem_of(msgspec.json.decode(answer, type=_Verdict))


async def slow_misfit(schema: dict[str, Any], value: Any, *, asker: str, wait: float) -> str | None:
    """Do the same as `misfit` if the check is not `is_quick`, without blocking the event loop.

    Also raises TooMuchWorkError if no process became free within `wait` seconds.
    """
    question = msgspec.json.encode([schema, value])
    try:
        answer = await _processes.ask_from_loop(
            question, asker=asker, seconds=CHECK_SECONDS, wait=wait
        )
    except TooSlow as error:
        raise TooMuchWorkError from error
    return _problem_of(msgspec.json.decode(answer, type=_Verdict))


def _problem_of(verdict: _Verdict) -> str | None:
    if not verdict.is_checked:
        raise TooMuchWorkError
    if not verdict.is_schema:
        raise NoSchemaError
    return verdict.misfit


def is_quick(schema: dict[str, Any], value: Any) -> bool:
    """Return whether a check is cheap enough to run in this process."""
    sizes = len(msgspec.json.encode(schema)), len(msgspec.json.encode(value))
    return is_cheap(schema, *sizes)


def _check(schema: dict[str, Any], value: Any) -> _Verdict:
    import jsonschema  # noqa: PLC0415 servers without sources never load it
    from jsonschema.validators import validator_for  # noqa: PLC0415 see above
    from referencing import Registry  # noqa: PLC0415 see above
    from referencing.exceptions import Unresolvable  # noqa: PLC0415 see above

    kind = validator_for(schema, default=jsonschema.Draft202012Validator)
    try:
        kind.check_schema(schema)
        # An empty registry: a schema must not make this server fetch anything.
        errors = kind(schema, registry=Registry()).iter_errors(value)
        error = jsonschema.exceptions.best_match(errors)
    except (jsonschema.SchemaError, Unresolvable, RecursionError, re.error):
        return _Verdict(is_schema=False)
    except (ArithmeticError, MemoryError):
        return _Verdict(is_checked=False)
    if error is None:
        return _Verdict()
    return _Verdict(misfit=f"{error.message[:500]} - at {error.json_path[:500]}")


def _checked(question: bytes) -> bytes:
    schema, value = msgspec.json.decode(question)
    return msgspec.json.encode(_check(schema, value))


if __name__ == "__main__":
    _check({}, None)  # loads the imports before the first check is timed
    limit_memory(_MEMORY_BYTES)
    serve(_checked, sys.stdin.buffer, sys.stdout.buffer)
