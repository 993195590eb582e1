"""The models that may answer for the assistant of a new server."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from agents_app.demo import ASSISTANT_WITHOUT_MODEL, assistant_with_model
from agents_app.providers.model_choice import (
    OPENAI_MODEL,
    NoModelError,
    choose_model,
    configured_provider,
    models_at,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from agents_app.providers.local_servers import ModelServer

VENDORS: Final[Mapping[str, str]] = {
    "openai_compat": "OpenAI",
    "anthropic": "Anthropic",
    "google": "Google Gemini",
}
LATER: Final = "later"
ENVIRONMENT: Final = "environment"


@dataclass(frozen=True, kw_only=True)
class Choice:
    """One way to get answers: `value` is what the form sends."""

    value: str
    label: str
    needs_key: bool = False


def choices(servers: Sequence[ModelServer]) -> list[Choice]:
    """Return the ways, the most convenient first."""
    ways = [
        Choice(value=f"local:{server.base_url}", label=f"{server.name}: {server.models[0]}")
        for server in servers
    ]
    if (provider := configured_provider()) is not None:
        ways.insert(0, Choice(value=ENVIRONMENT, label=VENDORS[provider]))
    vendors = [
        Choice(value=provider, label=name, needs_key=True) for provider, name in VENDORS.items()
    ]
    return [*ways, *vendors, Choice(value=LATER, label="")]


def assistant(choice: str, key: str, servers: Sequence[ModelServer]) -> dict[str, Any]:
    """Return the fields of the assistant, with its `key`; raises NoModelError."""
    if choice in VENDORS:
        models = models_at(choice, base_url=None, key=key)
        is_listed = choice == "openai_compat" and OPENAI_MODEL in models
        model = OPENAI_MODEL if is_listed else models[0]
        return {**assistant_with_model(choice, model), "key": key}
    if choice == ENVIRONMENT:
        chosen = choose_model()
        if chosen is not None:
            return assistant_with_model(chosen.provider, chosen.model)
    for server in servers:
        if choice == f"local:{server.base_url}":
            fields = assistant_with_model("openai_compat", server.models[0])
            return {**fields, "options": {"base_url": server.base_url}}
    if choice.startswith("local:"):
        raise NoModelError("That server no longer answers.")
    return dict(ASSISTANT_WITHOUT_MODEL)
