"""Whether a value fits a JSON Schema that a stranger wrote, for as long as we care to wait.

The law: a pattern, a reference or mere size can keep a check busy for hours, and a pattern holds up
every thread of its process meanwhile. What may be like that is checked by a process of its own,
which is killed when its time is over.
"""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec

CHECK_SECONDS = 5.0
_ROOT = Path(__file__).parent.parent
# Bytes of the schema times bytes of the value: this takes a fraction of a second.
_EFFORT = 4_000_000
_UNBOUNDED = frozenset(
    {
        "$dynamicRef", "$recursiveRef", "$ref", "pattern", "patternProperties", "unevaluatedItems",
        "unevaluatedProperties",
    }
)  # fmt: skip
_PROGRAM = "from agents_app.mcp_schemas import main; main()"


class NoSchemaError(Exception):
    """The schema is none, or refers to what is not in it."""


class TooMuchWorkError(Exception):
    """The check did not end in CHECK_SECONDS."""


class _Verdict(msgspec.Struct, omit_defaults=True):
    misfit: str | None = None
    is_schema: bool = True


def misfit(schema: dict[str, Any], value: Any) -> str | None:
    """Return what does not fit and where, None for what fits.

    Raises NoSchemaError and TooMuchWorkError. It blocks, for CHECK_SECONDS at most.
    """
    given = msgspec.json.encode([schema, value])
    size = len(msgspec.json.encode(schema))
    is_small = size * (len(given) - size) <= _EFFORT
    verdict = _check(schema, value) if is_small and _is_bounded(schema) else _check_elsewhere(given)
    if not verdict.is_schema:
        raise NoSchemaError
    return verdict.misfit


def _is_bounded(schema: Any) -> bool:
    if isinstance(schema, dict):
        return not _UNBOUNDED & schema.keys() and all(map(_is_bounded, schema.values()))
    return not isinstance(schema, list) or all(map(_is_bounded, schema))


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
    except (jsonschema.SchemaError, Unresolvable, RecursionError):
        return _Verdict(is_schema=False)
    if found is None:
        return _Verdict()
    return _Verdict(misfit=f"{found.message[:500]} - at {found.json_path[:500]}")


def _check_elsewhere(given: bytes) -> _Verdict:
    try:
        done = subprocess.run(  # noqa: S603 our own interpreter and our own module
            [sys.executable, "-c", _PROGRAM],
            input=given,
            stdout=subprocess.PIPE,
            env={"PYTHONPATH": str(_ROOT), "PATH": os.defpath},
            timeout=CHECK_SECONDS,
            check=True,
        )
    except (subprocess.TimeoutExpired, subprocess.CalledProcessError) as error:
        raise TooMuchWorkError from error
    return msgspec.json.decode(done.stdout, type=_Verdict)


def main() -> None:
    """Check what is on the standard input: [schema, value]."""
    schema, value = msgspec.json.decode(sys.stdin.buffer.read())
    sys.stdout.buffer.write(msgspec.json.encode(_check(schema, value)))
