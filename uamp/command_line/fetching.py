"""Fetches the verifiable form of the page at a URL, and the keys of its server."""

from __future__ import annotations

import base64
import binascii
import re
from itertools import islice
from typing import IO, TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

import httpx2
import msgspec

from uamp.client.errors import ClientError, ConnectionLostError, InvalidRequestError
from uamp.client.rest import Rest
from uamp.command_line import configuration

if TYPE_CHECKING:
    from collections.abc import Iterator

BYTES_MAX: Final = 2_000_000_000
"""The maximum size of a download, in bytes."""

_KEYS: Final = "/.well-known/jwks.json"
_KIDS_IN_REQUEST: Final = 50
_KIDS_MAX: Final = 1000
_LOCAL: Final = frozenset({"localhost", "127.0.0.1", "::1"})
_HEADER: Final = re.compile(rb"\beyJ[A-Za-z0-9_-]{10,300}(?=\.eyJ)")
_FORMS: Final = (
    (
        re.compile(r"(?:/api/v1)?/chats/([A-Za-z0-9_-]{1,40})"),
        r"/api/v1/chats/\1/export?format=ndjson&log=true",
    ),
    (
        re.compile(r"/api/v1/messages/([A-Za-z0-9_-]{1,40})"),
        r"/api/v1/messages/\1?expand=signature",
    ),
    (re.compile(r"/shared/([A-Za-z0-9_-]{1,100})"), r"/shared/\1?format=json"),
)
"""Paths of pages and messages, and the paths of their verifiable forms."""
_PAGE: Final = re.compile(r"(?:^|&)((?:after|before)=[0-9]{1,18})(?=&|$)")
"""The place of a page in a shared chat."""


class KeySet(msgspec.Struct):
    """A JSON Web Key Set (RFC 7517 §5)."""

    keys: list[dict[str, Any]]


def is_url(text: str) -> bool:
    """Return whether an argument is a URL rather than a file."""
    return text.startswith(("http://", "https://"))


async def fetch(url: str, out: IO[bytes]) -> list[dict[str, Any]]:
    """Write the verifiable form of a URL to a file, and return the keys that its server publishes.

    A saved key is sent only to the server that it was saved for, and redirects are not followed.
    Raises ClientError.
    """
    origin, path = _address(url)
    key = configuration.key_for(origin)
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    async with httpx2.AsyncClient(base_url=origin, headers=headers, timeout=30.0) as http:
        rest = Rest(http)
        kids = await _download(rest, path, out)
        keys = (await rest.read(_KEYS, KeySet)).keys
        missing = sorted(kids - {str(key.get("kid")) for key in keys})[:_KIDS_MAX]
        for start in range(0, len(missing), _KIDS_IN_REQUEST):
            query = "&".join(f"kid={kid}" for kid in missing[start : start + _KIDS_IN_REQUEST])
            keys += (await rest.read(f"{_KEYS}?{query}", KeySet)).keys
    return keys


async def _download(rest: Rest, path: str, out: IO[bytes]) -> set[str]:
    """Download a body, and return the ids of the keys that its signatures name."""
    kids: set[str] = set()
    size, tail = 0, b""
    try:
        async with rest.stream(path) as answer:
            async for chunk in answer.aiter_bytes():
                size += len(chunk)
                if size > BYTES_MAX:
                    raise ClientError("The file is too large.", code="file_too_large")
                out.write(chunk)
                kids.update(islice(_kids(tail + chunk), _KIDS_MAX - len(kids)))
                tail = chunk[-1000:]
    except httpx2.TransportError as error:
        raise ConnectionLostError(f"No answer from {rest.http.base_url}: {error}") from None
    return kids


def _kids(text: bytes) -> Iterator[str]:
    for header in _HEADER.findall(text):
        try:
            value = msgspec.json.decode(
                base64.urlsafe_b64decode(header + b"=" * (-len(header) % 4))
            )
        except (binascii.Error, msgspec.DecodeError, UnicodeDecodeError):
            continue
        kid = value.get("kid") if isinstance(value, dict) else None
        if isinstance(kid, str) and re.fullmatch(r"[\w-]{1,64}", kid, re.ASCII):
            yield kid


def _address(url: str) -> tuple[str, str]:
    """Return the origin of a URL, and the path and query of its verifiable form."""
    try:
        parts = urlsplit(url)
        is_safe = parts.scheme == "https" or parts.hostname in _LOCAL
    except ValueError as error:
        raise InvalidRequestError(f"This is not a URL: {error}") from None
    if not is_safe or not parts.hostname or parts.username:
        raise InvalidRequestError(
            "Keys are read over HTTPS only.", what_to_do="Use an address that begins with https://."
        )
    path = parts.path.rstrip("/")
    for pattern, form in _FORMS:
        match = pattern.fullmatch(path)
        if match is not None:
            path = match.expand(form)
            page = _PAGE.search(parts.query) if path.startswith("/shared/") else None
            more = f"&{page[1]}" if page is not None else ""
            return f"{parts.scheme}://{parts.netloc}", f"{path}{more}"
    query = f"?{parts.query}" if parts.query else ""
    return f"{parts.scheme}://{parts.netloc}", f"{path}{query}"
