"""Requests of foreign protocols with something odd in them, and what has to hold of the answers.

`Odd` requests are drawn with a fixed seed, so that the suite repeats them; GATEWAY_EXAMPLES draws
as many as it says, anew each time.
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any, Final

from hypothesis import HealthCheck, Phase, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import httpx
    from pytest_django import Settings

IN_THE_SUITE: Final = 20 if os.environ.get("SHORT_RUN") else 60
NUMBER: Final = int(os.environ.get("GATEWAY_EXAMPLES", str(IN_THE_SUITE)))
_INTERNAL: Final = (
    "Traceback",
    "psycopg",
    "sqlite3",
    "django",
    'File "/',
    "site-packages",
    "msgspec",
)
Path = tuple[str | int, ...]

# Written as they stand: no encoder of JSON makes them.
NUMBERS: Final = (
    "1e400",
    "-1e400",
    "NaN",
    "Infinity",
    "9" * 400,
    "1.0",
    "-0",
    "2e0",
    "9007199254740993",
)
TEXTS: Final = (
    r'"\ud800"',
    r'"\u0000"',
    r'"a\u0000b"',
    r'"\r\nX-Injected: 1"',
    '"' + "x" * 300_000 + '"',
    '"' + "\U0001f600" * 70 + '"',
    '"../../../etc/passwd"',
    '"file:///etc/passwd"',
    '"http://169.254.169.254/latest/meta-data/"',
    '"data:image/png;base64,!!!!"',
    '"data:;base64,"',
    '"/api/content/00000000-0000-0000-0000-000000000000"',
    '"%00"',
    '""',
)
SHAPES: Final = (
    "null",
    "true",
    "[]",
    "{}",
    "[null]",
    "[[[[[]]]]]",
    "[" * 40 + "]" * 40,
    "[" + "0," * 20_000 + "0]",
    '{"a": 1, "a": 2}',
    "{" + ",".join(f'"k{n}": 0' for n in range(1_100)) + "}",
    '{"' + "k" * 300 + '": 1}',
)
ODD: Final = (*NUMBERS, *TEXTS, *SHAPES)
# What is no JSON of a request.
BODIES: Final = (
    b"",
    b"\xff\xfe\x00",
    b"\xef\xbb\xbf{}",
    b"{",
    b"{}{}",
    b"null",
    b'"text"',
    b"[" * 20_000,
    b'{"a":' * 5_000,
    b"\x00",
    b'{"a": "\xed\xa0\x80"}',
)
_MARK: Final = "@odd@"


def places(value: Any, place: Path = ()) -> Iterator[Path]:
    """Yield the way to each part of a JSON value but the whole."""
    members = value.items() if isinstance(value, dict) else enumerate(value)
    for key, member in members:
        yield (*place, key)
        if isinstance(member, dict | list):
            yield from places(member, (*place, key))


def with_odd(value: Any, place: Path, odd: str) -> bytes:
    """Return a JSON value whose part at a place is the text `odd`, as it stands."""
    copied = json.loads(json.dumps(value))
    inner = copied
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = _MARK
    return json.dumps(copied).replace(json.dumps(_MARK), odd).encode("utf-8", "surrogatepass")


def odd_bodies(valid: Any) -> st.SearchStrategy[bytes]:
    """Draw a valid body with one odd part, or what is no JSON."""
    return st.one_of(
        st.builds(
            with_odd, st.just(valid), st.sampled_from(list(places(valid))), st.sampled_from(ODD)
        ),
        st.sampled_from(BODIES),
        st.binary(max_size=40),
    )


def run_examples(show: Callable[[Any], None], examples: st.SearchStrategy[Any]) -> None:
    """Call `show` for many examples."""

    @hypothesis_settings(
        max_examples=NUMBER,
        derandomize=NUMBER == IN_THE_SUITE,
        deadline=None,
        database=None,
        phases=(Phase.generate,),
        suppress_health_check=list(HealthCheck),
    )
    @given(examples)
    def one(example: Any) -> None:
        show(example)

    one()


def no_hurry(settings: Settings) -> None:
    """Let the examples come as fast as they can."""
    for name in dir(settings):
        if name.startswith("UAMP_") and name.endswith(("_PER_MINUTE", "_BURST")):
            setattr(settings, name, 10**6)


def check_text(text: str) -> None:
    """Check that an answer says nothing of what the server is made of."""
    assert not [word for word in _INTERNAL if word in text], text[:500]


def check_answer(answer: httpx.Response) -> None:
    """Check an HTTP answer: no error of the server's own, and no page for people."""
    # ACP answers a batch with 501.
    is_refused = answer.status_code in {*range(500), 501}
    assert is_refused, (answer.status_code, answer.text[:500])
    assert "html" not in answer.headers.get("Content-Type", ""), answer.text[:500]
    assert "X-Injected" not in answer.headers
    check_text(answer.text)
    assert "internal_error" not in answer.text
    if answer.status_code >= 400:
        check_refusal(answer.json())


def check_refusal(body: Any) -> None:
    """Check that a refusal has a message in the form of its protocol, or is a problem document."""
    message = body["error"]["message"] if "error" in body else body["title"]
    assert isinstance(message, str), body
    assert message, body
