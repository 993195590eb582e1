"""The issuers whose tokens are accepted, from UAMP_JWT_ISSUERS."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from django.conf import settings


@dataclass(frozen=True, kw_only=True, slots=True)
class Issuer:
    """A token issuer: its identity, how its tokens are verified, and the rights they grant.

    `issuer` must equal `iss`, and `aud` must contain one of `audience`. `algorithms` are the only
    signature algorithms accepted, whatever a token says. A token grants the scopes in its claim
    that are among `scopes`; without the claim it grants `default_scopes`. With `creates_people`, a
    subject's first token creates an account named after `username_claim`.
    """

    issuer: str
    audience: tuple[str, ...]
    jwks_url: str
    algorithms: tuple[str, ...] = ("RS256", "ES256", "EdDSA")
    types: tuple[str, ...] = ("jwt", "at+jwt")
    scopes: tuple[str, ...] = ("*",)
    default_scopes: tuple[str, ...] = ()
    creates_people: bool = False
    username_claim: str = "preferred_username"


def issuers() -> dict[str, Issuer]:
    """Return the issuers by name."""
    return _read(tuple(_frozen(entry) for entry in settings.UAMP_JWT_ISSUERS))


@lru_cache(maxsize=4)
def _read(listed: tuple[tuple[tuple[str, object], ...], ...]) -> dict[str, Issuer]:
    issuer_list = [Issuer(**dict(entry)) for entry in listed]  # type: ignore[arg-type]  # checked when the settings were read
    return {issuer.issuer: issuer for issuer in issuer_list}


def _frozen(values: dict[str, object]) -> tuple[tuple[str, object], ...]:
    return tuple(
        (name, tuple(value) if isinstance(value, list) else value)
        for name, value in sorted(values.items())
    )
