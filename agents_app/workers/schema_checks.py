"""Checks of values against JSON Schemas of clients and MCP servers, within a time limit.

A keyword can keep a check busy for hours, and a pattern holds up every thread of its process
meanwhile. A schema that is not known to be cheap is checked by one of a few processes, which is
killed when its time is over.
"""

import re
import resource
import sys
from typing import Any

import msgspec

from agents_app.workers.child_processes import ChildProcesses, TooSlow, serve
from agents_app.workers.schema_cost import is_cheap

CHECK_SECONDS = 2.0
WAIT_SECONDS = 10.0
"""For so long a check waits for a process that is free."""
# The messages of a check may be as long as the value, each of them.
_MEMORY_BYTES = 512 * 1024 * 1024
_processes = ChildProcesses("agents_app.workers.schema_checks")


class NoSchemaError(Exception):
    """The schema is none, or refers to what is not in it."""


class TooMuchWorkError(Exception):
    """The check did not end in CHECK_SECONDS, or needs too much memory."""


class _Verdict(msgspec.Struct, omit_defaults=True):
    misfit: str | None = None
    is_schema: bool = True
    is_checked: bool = True


def misfit(schema: dict[str, Any], value: Any, *, asker: str) -> str | None:
    """Return what does not fit and where, None for what fits.

    `asker` is whose schema it is: the checks of one asker are made one after another. Raises
    NoSchemaError and TooMuchWorkError. It blocks, for WAIT_SECONDS and CHECK_SECONDS at most, and
    for a fraction of a second where `is_quick`.
    """
    if is_quick(schema, value):
        return _problem_of(_check(schema, value))
    given = msgspec.json.encode([schema, value])
    try:
        found = _processes.ask(given, asker=asker, seconds=CHECK_SECONDS, wait=WAIT_SECONDS)
    except TooSlow as error:
        raise TooMuchWorkError from error
    return _problem_of(msgspec.json.decode(found, type=_Verdict))


async def slow_misfit(schema: dict[str, Any], value: Any, *, asker: str, wait: float) -> str | None:
    """Do as `misfit` for what is not `is_quick`, without holding up the event loop.

    Raises TooMuchWorkError also when no process was free for `wait` seconds.
    """
    given = msgspec.json.encode([schema, value])
    try:
        found = await _processes.ask_from_loop(given, asker=asker, seconds=CHECK_SECONDS, wait=wait)
    except TooSlow as error:
        raise TooMuchWorkError from error
    return _problem_of(msgspec.json.decode(found, type=_Verdict))


def _problem_of(verdict: _Verdict) -> str | None:
    if not verdict.is_checked:
        raise TooMuchWorkError
    if not verdict.is_schema:
        raise NoSchemaError
    return verdict.misfit


def is_quick(schema: dict[str, Any], value: Any) -> bool:
    """Return whether a check needs no process of its own."""
    sizes = len(msgspec.json.encode(schema)), len(msgspec.json.encode(value))
    return is_cheap(schema, *sizes)


def _check(schema: dict[str, Any], value: Any) -> _Verdict:
    import jsonschema  # noqa: PLC0415 a server without sources never loads it
    from jsonschema.validators import validator_for  # noqa: PLC0415 see above
    from referencing import Registry  # noqa: PLC0415 see above
    from referencing.exceptions import Unresolvable  # noqa: PLC0415 see above

    kind = validator_for(schema, default=jsonschema.Draft202012Validator)
    try:
        kind.check_schema(schema)
        # An empty registry: a schema must not make this server fetch anything.
        errors = kind(schema, registry=Registry()).iter_errors(value)
        found = jsonschema.exceptions.best_match(errors)
    except (jsonschema.SchemaError, Unresolvable, RecursionError, re.error):
        return _Verdict(is_schema=False)
    except (ArithmeticError, MemoryError):
        return _Verdict(is_checked=False)
    if found is None:
        return _Verdict()
    return _Verdict(misfit=f"{found.message[:500]} - at {found.json_path[:500]}")


def _checked(given: bytes) -> bytes:
    schema, value = msgspec.json.decode(given)
    return msgspec.json.encode(_check(schema, value))


if __name__ == "__main__":
    _check({}, None)  # what it imports is loaded before the first check is timed
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY_BYTES, _MEMORY_BYTES))
    serve(_checked, sys.stdin.buffer, sys.stdout.buffer)
