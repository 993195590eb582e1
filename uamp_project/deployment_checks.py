"""Checks of `manage.py check --deploy`: what a server on the internet still lacks.

They only read settings and environment variables.
"""

from __future__ import annotations

import os
import re
from difflib import get_close_matches
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from django.conf import settings
from django.core import checks
from django.core.checks import CheckMessage, Error, Info, Warning  # noqa: A004 Django's name

from uamp_project.settings.environment import names_read

if TYPE_CHECKING:
    from collections.abc import Iterable

OWN_PREFIX: Final = "UAMP_"
# Variables that are read outside the settings: by commands, the client, and parts of the server.
OTHER_NAMES: Final = frozenset(
    {"DEMO_PASSWORD", "HOST", "PORT", "UAMP_KEY", "UAMP_LAYER_ROLE", "UAMP_URL"}
)
# Kubernetes adds these for each service of the namespace, such as one named uamp.
SERVICE_LINK: Final = re.compile(r"_(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT(_\d+_\w+)?)\Z")
# How alike a name without our prefix has to be to count as misspelt.
SIMILARITY: Final = 0.88


@checks.register(deploy=True)
def check_redis(**_: Any) -> list[CheckMessage]:
    """Check that servers which share a database also share a Redis."""
    if not settings.DATABASE_URL or settings.REDIS_URL:
        return []
    return [
        Error(
            "DATABASE_URL is set, but REDIS_URL is not.",
            hint="Without Redis, people on two processes do not see each other's messages arrive,"
            " and no other worker takes tasks. Set REDIS_URL, for example redis://host:6379/0.",
            id="uamp.E014",
        )
    ]


@checks.register(deploy=True)
def check_issuer(**_: Any) -> list[CheckMessage]:
    """Check that UAMP_ISSUER is an address under which others reach this server."""
    host = urlsplit(settings.UAMP_ISSUER).hostname or ""
    if not _is_local(host):
        return []
    return [
        Error(
            f"UAMP_ISSUER is {settings.UAMP_ISSUER}, which others cannot reach.",
            hint="Set it to the public address of this server, for example"
            " https://chat.example.org: tokens, invitations and signatures carry it.",
            id="uamp.E015",
        )
    ]


@checks.register(deploy=True)
def check_https(**_: Any) -> list[CheckMessage]:
    """Check that HTTPS is on, in place of the four warnings of Django about what it turns on."""
    if settings.HTTPS:
        return []
    return [
        Warning(
            "HTTPS is off, so passwords and cookies can be read on their way.",
            hint="Put a proxy with TLS before the server and set HTTPS=1, which turns on secure"
            " cookies, HSTS and redirects.",
            id="uamp.W019",
        )
    ]


@checks.register(deploy=True)
def check_hosts(**_: Any) -> list[CheckMessage]:
    """Check that the server answers to a name that others use."""
    if not all(_is_local(host.strip("[]")) for host in settings.ALLOWED_HOSTS):
        return []
    return [
        Error(
            "ALLOWED_HOSTS has only names of this machine, so visitors get 400.",
            hint="Set it to the public name of this server, for example chat.example.org.",
            id="uamp.E020",
        )
    ]


@checks.register(deploy=True)
def check_secret_key(**_: Any) -> list[CheckMessage]:
    """Check that machines which share a database also share their secret key."""
    if not settings.DATABASE_URL or os.environ.get("SECRET_KEY"):
        return []
    return [
        Warning(
            "DATABASE_URL is set, but SECRET_KEY is not.",
            hint="Set it to the output of `openssl rand -base64 48`, the same for every process:"
            " those that do not share DATA_DIR/secret_key reject each other's sessions.",
            id="uamp.W021",
        )
    ]


@checks.register(deploy=True)
def check_proxies(**_: Any) -> list[CheckMessage]:
    """Check that a server behind a proxy knows that proxy."""
    if not settings.HTTPS or settings.UAMP_TRUSTED_PROXIES:
        return []
    return [
        Error(
            "HTTPS is on, but UAMP_TRUSTED_PROXIES is empty.",
            hint="All visitors would share the address of the proxy, and its limits. Set it to the"
            " addresses of your proxies, for example 10.0.0.0/8.",
            id="uamp.E016",
        )
    ]


@checks.register(deploy=True)
def check_loopback_peers(**_: Any) -> list[CheckMessage]:
    """Check that peers are not asked without TLS."""
    if not settings.UAMP_PEER_LOOPBACK_HTTP:
        return []
    return [
        Error(
            "UAMP_PEER_LOOPBACK_HTTP is on, so peers may be asked without TLS.",
            hint="It is for trying two servers on one machine. Unset it.",
            id="uamp.E026",
        )
    ]


@checks.register(deploy=True)
def check_bucket(**_: Any) -> list[CheckMessage]:
    """Check that the settings of an S3 bucket are whole."""
    names = ("UAMP_S3_BUCKET", "UAMP_S3_KEY_ID", "UAMP_S3_SECRET_KEY")
    missing = [name for name in names if not getattr(settings, name)]
    if settings.UAMP_S3_BUCKET and len(missing) == len(names) - 1:
        return [
            Info(
                "UAMP_S3_BUCKET is set, but UAMP_S3_KEY_ID and UAMP_S3_SECRET_KEY are not.",
                hint="Set both, unless AWS gives this machine a role.",
                id="uamp.I018",
            )
        ]
    others = ("UAMP_S3_ENDPOINT", "UAMP_S3_REGION")
    is_used = len(missing) < len(names) or any(getattr(settings, name) for name in others)
    return [
        Error(
            f"{name} is not set, but other settings of the S3 bucket are.",
            hint="Without a bucket, files are stored in DATA_DIR; without both halves of the key,"
            " the bucket refuses them.",
            id="uamp.E018",
        )
        for name in missing
        if is_used
    ]


@checks.register(deploy=True)
def check_names(**_: Any) -> list[CheckMessage]:
    """Check that no environment variable is misspelt, because unknown ones have no effect."""
    return misspelt(os.environ, known_names())


def known_names() -> frozenset[str]:
    """Return the names of all variables that may be set."""
    return OTHER_NAMES | names_read


def misspelt(names: Iterable[str], valid_names: frozenset[str]) -> list[CheckMessage]:
    """Return a message for each name that resembles a variable of ours."""
    problems: list[CheckMessage] = []
    unprefixed = [name for name in valid_names if not name.startswith(OWN_PREFIX)]
    for name in sorted(set(names) - valid_names):
        is_ours = name.startswith(OWN_PREFIX) and not SERVICE_LINK.search(name)
        nearest = (
            get_close_matches(name, valid_names, 1)
            if is_ours
            else get_close_matches(name, unprefixed, 1, SIMILARITY)
        )
        if is_ours or nearest:
            hint = f"Did you mean {nearest[0]}?" if nearest else "docs/settings.md lists all."
            problems.append(
                Error(f"{name} is not a setting and has no effect.", hint=hint, id="uamp.E017")
            )
    return problems


def _is_local(host: str) -> bool:
    try:
        address = ip_address(host)
    except ValueError:
        return host in {"", "localhost"} or host.endswith(".localhost")
    return address.is_loopback or address.is_unspecified
