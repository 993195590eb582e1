"""Reading environment variables: an invalid value aborts start-up, naming its variable.

An unset variable has its default; so does an empty number, choice, amount, switch or folder.
"""

from __future__ import annotations

import ipaddress
import json
import math
import os
import re
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

import dj_database_url
from django.core.exceptions import ImproperlyConfigured

from uamp.transparency.notes import Witness

if TYPE_CHECKING:
    from collections.abc import Sequence

# Larger values make no sense, and sums of times would exceed the calendar.
_MAX_INTEGER: Final = 10**15
_MAX_SECONDS: Final = 10**9
_ORIGIN: Final = re.compile(r"[a-z][a-z0-9+.-]*://[a-z0-9._\[\]:-]+")
_ICE_URL: Final = re.compile(r"(?:stuns?|turns?):[^\s/]+\Z")
_ON: Final = ("1", "true", "yes", "on")
_OFF: Final = ("0", "false", "no", "off")


names_read: Final[set[str]] = set()
"""The names of the variables that the settings read, for the check of misspelt ones."""


def string(name: str, default: str = "") -> str:
    """Return the text of a variable."""
    names_read.add(name)
    return os.environ.get(name, default)


def integer(name: str, default: int, *, minimum: int = 0, maximum: int = _MAX_INTEGER) -> int:
    """Return a whole number; raises ImproperlyConfigured for anything else."""
    text = string(name) or str(default)
    try:
        value = int(text)
    except ValueError:
        raise _refused(name, text, f"a whole number from {minimum} to {maximum}") from None
    if not minimum <= value <= maximum:
        raise _refused(name, text, f"a whole number from {minimum} to {maximum}")
    return value


def number(
    name: str, default: float, *, minimum: float = 0, maximum: float = _MAX_SECONDS
) -> float:
    """Return a number, possibly fractional; raises ImproperlyConfigured for anything else."""
    text = string(name) or str(default)
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not minimum <= value <= maximum:
        raise _refused(name, text, f"a number from {minimum} to {maximum}")
    return value


def amount(name: str, default: str) -> str:
    """Return an amount of money as written; raises ImproperlyConfigured for anything else."""
    text = string(name) or default
    try:
        is_amount = Decimal(text).is_finite() and Decimal(text) >= 0
    except InvalidOperation:
        is_amount = False
    if not is_amount:
        raise _refused(name, text, "an amount, such as 1000 or 99.50")
    return text


def choice(name: str, default: str, choices: Sequence[str]) -> str:
    """Return one of the choices, matched regardless of case."""
    text = string(name) or default
    for option in choices:
        if option.casefold() == text.casefold():
            return option
    raise _refused(name, text, f"one of {', '.join(choices)}")


def switch(name: str, default: str) -> bool:
    """Return whether a switch is on; raises ImproperlyConfigured for an unknown word."""
    text = string(name) or default
    word = text.strip().casefold()
    if word not in (*_ON, *_OFF):
        raise _refused(name, text, f"one of {', '.join(_ON)} (on) or {', '.join(_OFF)} (off)")
    return word in _ON


def folder(name: str, default: Path) -> Path:
    """Return a writable folder, creating it (0700) if missing."""
    path = Path(string(name) or default).resolve()
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise _refused(name, str(path), f"a folder ({error.strerror})") from None
    if not os.access(path, os.W_OK | os.X_OK):
        raise _refused(name, str(path), "a folder that this user can write to")
    return path


def items(name: str, default: str = "") -> list[str]:
    """Return comma-separated items, without empty ones."""
    return [item for part in string(name, default).split(",") if (item := part.strip())]


def witnesses(name: str) -> list[str]:
    """Return comma-separated witnesses: verifier keys (C2SP), each with an optional address."""
    entries = items(name)
    for item in entries:
        key, _, address = item.partition(" ")
        try:
            Witness.parse(key)
        except ValueError:
            raise _refused(name, item, "the verifier key of a witness: <name>+<id>+<key>") from None
        if address and not address.startswith(("https://", "http://")):
            raise _refused(
                name, item, "a verifier key, a space, and the https address of a witness"
            )
    return entries


def networks(name: str) -> list[str]:
    """Return addresses and networks, or `unix` for a local socket."""
    entries = items(name)
    for item in entries:
        try:
            if item != "unix":
                ipaddress.ip_network(item, strict=False)
        except ValueError:
            expected = "an address or a network, such as 10.0.0.0/8, or unix"
            raise _refused(name, item, expected) from None
    return entries


def origins(name: str) -> list[str]:
    """Return origins as browsers send them, such as `https://example.org:8443`, or `*` for all."""
    entries = items(name)
    for item in entries:
        if item != "*" and not _ORIGIN.fullmatch(item):
            raise _refused(name, item, "an origin, such as https://example.org, or *")
    return entries


def json_object(name: str) -> dict[str, Any]:
    """Return a JSON object, empty if the variable is not set."""
    text = string(name) or "{}"
    try:
        value = json.loads(text)
    except ValueError:
        value = None
    if not isinstance(value, dict):
        raise _refused(name, text, "a JSON object")
    return value


def group_bytes(name: str, *, maximum: int) -> dict[str, int]:
    """Return a JSON object that maps group names to numbers of bytes."""
    sizes = json_object(name)
    # A bool is an int in Python, but not a number of bytes.
    if not all(type(value) is int and 0 < value <= maximum for value in sizes.values()):
        text = string(name)
        raise _refused(
            name, text, f'an object such as {{"Operator": 1048576}}, each from 1 to {maximum}'
        )
    return sizes


def ice_servers(name: str) -> list[dict[str, Any]]:
    """Return a JSON array of RTCIceServer objects; errors omit it, as it may contain passwords."""
    try:
        servers = json.loads(string(name) or "[]")
        is_good = all(_ice_urls(server) for server in servers)
    except (ValueError, TypeError, KeyError):
        is_good = False
    if not is_good or not isinstance(servers, list):
        raise ImproperlyConfigured(
            f'{name} has to be a JSON array such as [{{"urls": "turn:turn.example.org:3478",'
            ' "username": "uamp", "credential": "secret"}].'
        )
    return servers


def jwt_issuers(name: str) -> list[dict[str, Any]]:
    """Return a JSON array of the issuers whose tokens are accepted."""
    text = string(name) or "[]"
    try:
        issuers = json.loads(text)
        is_good = isinstance(issuers, list) and all(_is_issuer(issuer) for issuer in issuers)
        is_good = is_good and len({issuer["issuer"] for issuer in issuers}) == len(issuers)
    except (ValueError, TypeError, KeyError):
        is_good = False
    if not is_good:
        raise _refused(
            name,
            text,
            'a JSON array such as [{"issuer": "https://id.example.org", "audience":'
            ' ["https://chat.example.org"], "jwks_url": "https://id.example.org/jwks"}]',
        )
    return list(issuers)


_ISSUER_LISTS: Final = ("audience", "algorithms", "types", "scopes", "default_scopes")
_ISSUER_TEXTS: Final = ("issuer", "jwks_url", "username_claim")
_ALGORITHMS: Final = {"RS256", "ES256", "EdDSA"}


def _is_issuer(issuer: dict[str, Any]) -> bool:
    lists = {name: issuer[name] for name in _ISSUER_LISTS if name in issuer}
    texts = {name: issuer[name] for name in _ISSUER_TEXTS if name in issuer}
    return (
        {"issuer", "audience", "jwks_url"} <= set(issuer)
        and set(issuer) <= {*_ISSUER_LISTS, *_ISSUER_TEXTS, "creates_people"}
        and isinstance(issuer.get("creates_people", False), bool)
        and all(isinstance(text, str) and text for text in texts.values())
        and all(
            isinstance(listed, list) and all(isinstance(item, str) and item for item in listed)
            for listed in lists.values()
        )
        and bool(issuer["audience"])
        and set(issuer.get("algorithms", _ALGORITHMS)) <= _ALGORITHMS
    )


def _ice_urls(server: dict[str, Any]) -> bool:
    urls = server["urls"]
    listed = [urls] if isinstance(urls, str) else list(urls)
    return bool(listed) and all(_ICE_URL.match(url) for url in listed)


def database(name: str, **options: Any) -> dict[str, Any]:
    """Return the PostgreSQL settings from a URL; errors omit it, as it contains a password."""
    try:
        database_settings = dict(dj_database_url.parse(string(name), **options))
    except (ValueError, dj_database_url.UnknownSchemeError):
        database_settings = {}
    if database_settings.get("ENGINE") != "django.db.backends.postgresql":
        raise ImproperlyConfigured(f"{name} has to be as postgres://user:password@host:5432/name.")
    return database_settings


def redis(name: str) -> str:
    """Return the URL of a Redis, or ''; errors omit it, as it may contain a password."""
    return _redis(name, string(name).strip())


def redis_servers(name: str) -> list[str]:
    """Return the URLs of several Redis servers, separated by commas."""
    return [_redis(name, url) for part in string(name).split(",") if (url := part.strip())]


def _redis(name: str, text: str) -> str:
    try:
        parts = urlsplit(text)
        # Reading the port raises ValueError if it is not a number.
        host, _ = parts.hostname, parts.port
        is_good = parts.scheme in {"redis", "rediss"} and bool(host)
    except ValueError:
        is_good = False
    if text and not is_good:
        raise ImproperlyConfigured(f"{name} has to be as redis://:password@host:6379/0.")
    return text


def _refused(name: str, text: str, requirement: str) -> ImproperlyConfigured:
    return ImproperlyConfigured(f"{name} is {text!r}: it has to be {requirement}.")
