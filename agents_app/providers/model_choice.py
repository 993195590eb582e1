"""The model of a new server's assistant, from the environment or the model server's list.

OPENAI_*, ANTHROPIC_* and GOOGLE_* are tried in this order; the first one that is set wins. A server
is asked for its models once, briefly. If that fails, the error explains to the operator what to do,
without revealing any key.
"""

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import httpx

LIST_SECONDS = 5.0
OPENAI_MODEL = "gpt-4o-mini"
"""The default at OpenAI itself, whose list has hundreds of models in no useful order."""

# Kinds of listed models that are not chat models.
_OTHER_KINDS = (
    "embed", "rerank", "whisper", "tts", "dall-e", "moderation", "transcribe", "bge-", "image",
    "audio", "realtime", "clip", "imagen", "veo", "aqa",
)  # fmt: skip


class NoModelError(Exception):
    """A provider is configured, but no model could be chosen; the message says what to do."""


@dataclass(frozen=True, kw_only=True)
class ChosenModel:
    """A provider, as in agents_app.models.Agent, and one of its models."""

    provider: str
    model: str


@dataclass(frozen=True, kw_only=True)
class _Vendor:
    provider: str
    prefix: str
    model: Callable[[], str | None]
    default_url: str
    path: str
    headers: Callable[[str], dict[str, str]]
    # The member of a listing that holds the models, and the member with a model's name.
    member: str
    name: str


_VENDORS = (
    _Vendor(
        provider="openai_compat",
        prefix="OPENAI",
        model=lambda: os.environ.get("OPENAI_MODEL"),
        default_url="https://api.openai.com/v1",
        path="/models",
        headers=lambda key: {"Authorization": f"Bearer {key}"},
        member="data",
        name="id",
    ),
    _Vendor(
        provider="anthropic",
        prefix="ANTHROPIC",
        model=lambda: os.environ.get("ANTHROPIC_MODEL"),
        default_url="https://api.anthropic.com",
        path="/v1/models",
        headers=lambda key: {"x-api-key": key, "anthropic-version": "2023-06-01"},
        member="data",
        name="id",
    ),
    _Vendor(
        provider="google",
        prefix="GOOGLE",
        model=lambda: os.environ.get("GOOGLE_MODEL"),
        default_url="https://generativelanguage.googleapis.com",
        path="/v1beta/models",
        headers=lambda key: {"x-goog-api-key": key},
        member="models",
        name="name",
    ),
)


def configured_provider() -> str | None:
    """Return the provider configured in the environment, or None."""
    vendor = _configured()
    return None if vendor is None else vendor.provider


def choose_model() -> ChosenModel | None:
    """Return the model configured in the environment, or None if there is no provider.

    Blocks for a little over LIST_SECONDS at most. Raises NoModelError.
    """
    vendor = _configured()
    if vendor is None:
        return None
    model = vendor.model()
    if not model and vendor.prefix == "OPENAI" and not os.environ.get("OPENAI_BASE_URL"):
        model = OPENAI_MODEL
    return ChosenModel(provider=vendor.provider, model=model or _first_listed(vendor))


def _configured() -> _Vendor | None:
    for vendor in _VENDORS:
        if any(os.environ.get(f"{vendor.prefix}_{name}") for name in ("BASE_URL", "API_KEY")):
            return vendor
    return None


def models_at(provider: str, *, base_url: str | None, key: str) -> list[str]:
    """Return a server's chat models, in the order in which it lists them.

    `base_url` defaults to the address that the environment names, or to the vendor's. Blocks for a
    little over LIST_SECONDS at most. Raises NoModelError.
    """
    vendor = next(vendor for vendor in _VENDORS if vendor.provider == provider)
    try:
        return _list(vendor, base_url or _address_of(vendor), key)
    except _ListingError as error:
        raise NoModelError(f"{error}.") from error


def models_in(listing: bytes) -> tuple[str, ...]:
    """Return the chat models in a listing of OpenAI's API; () for anything else."""
    return models_listed("openai_compat", listing)


def listing_request(
    provider: str, address: str, key: str | None
) -> tuple[str, dict[str, str]] | None:
    """Return the URL and headers of a request for a server's models; None if it cannot list any."""
    for vendor in _VENDORS:
        if vendor.provider == provider:
            return _listing_url(vendor, address), vendor.headers(key) if key else {}
    return None


def models_listed(provider: str, listing: bytes) -> tuple[str, ...]:
    """Return the chat models in a provider's listing; () for anything else."""
    for vendor in _VENDORS:
        if vendor.provider == provider:
            try:
                listed = json.loads(listing)[vendor.member]
                names = [
                    str(entry[vendor.name])
                    for entry in listed
                    if _chats(entry, str(entry[vendor.name]))
                ]
            except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
                return ()
            return tuple(name.removeprefix("models/") for name in names)
    return ()


class _ListingError(Exception):
    """The models of a server could not be listed; the message has the server and the reason."""


def _first_listed(vendor: _Vendor) -> str:
    """Return the first chat model in the server's list."""
    try:
        return _list(vendor, _address_of(vendor), os.environ.get(f"{vendor.prefix}_API_KEY"))[0]
    except _ListingError as error:
        raise NoModelError(
            f"{error}. Start that server or correct {vendor.prefix}_BASE_URL and"
            f" {vendor.prefix}_API_KEY, or name a model in {vendor.prefix}_MODEL, and start this"
            " server again."
        ) from error


def _address_of(vendor: _Vendor) -> str:
    return os.environ.get(f"{vendor.prefix}_BASE_URL") or vendor.default_url


def _list(vendor: _Vendor, base: str, key: str | None) -> list[str]:
    url = _listing_url(vendor, base)
    try:
        answer = httpx.get(
            url, headers=vendor.headers(key) if key else {}, timeout=LIST_SECONDS
        ).raise_for_status()
        listed = answer.json()[vendor.member]
        models = [
            str(entry[vendor.name]) for entry in listed if _chats(entry, str(entry[vendor.name]))
        ]
    except httpx.HTTPStatusError as error:
        raise _failed(vendor, url, f"answered {error.response.status_code}") from error
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise _failed(vendor, url, "did not answer") from error
    except (ValueError, KeyError, TypeError) as error:
        raise _failed(vendor, url, "gave no list of models") from error
    if not models:
        raise _failed(vendor, url, "lists no model that chats")
    return [model.removeprefix("models/") for model in models]


def _listing_url(vendor: _Vendor, base: str) -> str:
    base = base.rstrip("/")
    if vendor.prefix != "OPENAI":
        base = base.removesuffix(vendor.path.removesuffix("/models"))
    return base + vendor.path


def _chats(listed: Mapping[str, Any], name: str) -> bool:
    methods = listed.get("supportedGenerationMethods")
    if methods is not None and "generateContent" not in methods:
        return False
    return not any(kind in name.lower() for kind in _OTHER_KINDS)


def _failed(vendor: _Vendor, url: str, what: str) -> _ListingError:
    try:
        place = str(httpx.URL(url).copy_with(userinfo=b"", query=None))
    except httpx.InvalidURL:
        place = f"{vendor.prefix}_BASE_URL"
    return _ListingError(f"{place} {what}")
