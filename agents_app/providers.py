"""From an agent's row to the model that answers for it.

The law: keys come from the environment, never from a row, and the default key goes to the default
server only.
"""

import os
from functools import partial
from typing import Any

from agents_app.scripts import SCRIPTS
from agents_app.selectors import AgentSpec
from upp import ErrorCode, Model, UPPError
from upp.providers.openai_compat import OpenAICompatProvider
from upp.providers.scripted import ScriptedModel

_providers: dict[tuple[str, str | None], OpenAICompatProvider] = {}


def build_model(spec: AgentSpec, *, model: str | None = None) -> Model:
    """Return the model of an agent; `model` is taken only when the agent's options allow it.

    Options of a scripted agent: `script` (its own name by default), `delay` (seconds before each
    piece). Of an openai_compat agent: `base_url`, `api_key_env` (the name of an environment
    variable; without it a `base_url` of its own gets no key), `models` (what a client may choose).
    Raises UPPError MODEL_NOT_FOUND for an unknown script or provider, INVALID_REQUEST for an agent
    without a model.
    """
    if spec.provider == "scripted":
        name = str(spec.options.get("script", spec.name))
        script = SCRIPTS.get(name)
        if script is None:
            raise UPPError(
                f"Agent {spec.name}: there is no script named {name!r}.",
                code=ErrorCode.MODEL_NOT_FOUND,
                provider="scripted",
            )
        delay = float(spec.options.get("delay", 0.0))
        return ScriptedModel(script=partial(script, spec), delay=delay, model_id=name)
    if spec.provider == "openai_compat":
        chosen = model if model in spec.options.get("models", ()) else spec.model
        if not chosen:
            raise UPPError(
                f"Agent {spec.name} names no model.",
                code=ErrorCode.INVALID_REQUEST,
                provider=spec.provider,
            )
        return _server(spec.options.get("base_url"), spec.options.get("api_key_env"))(chosen)
    raise UPPError(
        f"Agent {spec.name}: there is no provider named {spec.provider!r}.",
        code=ErrorCode.MODEL_NOT_FOUND,
        provider=spec.provider,
    )


def vendor_params(spec: AgentSpec, overrides: Any) -> dict[str, Any]:
    """Return the vendor's parameters: the agent's `options.params`, then a request's overrides."""
    params = dict(spec.options.get("params", {}))
    for name in ("temperature", "max_tokens"):
        if overrides.get(name) is not None:
            params[name] = overrides[name]
    return params


async def close_providers() -> None:
    """Close the running loop's connections to models; for the end of the process."""
    for provider in _providers.values():
        await provider.aclose()


def _server(base_url: str | None, api_key_env: str | None) -> OpenAICompatProvider:
    if api_key_env is None and base_url is None:
        api_key_env = "OPENAI_API_KEY"
    key = os.environ.get(api_key_env) if api_key_env else None
    default = os.environ.get("OPENAI_BASE_URL") or "https://api.openai.com/v1"
    return _provider(base_url or default, key)


def _provider(base_url: str, api_key: str | None) -> OpenAICompatProvider:
    # One provider keeps one pool of connections.
    provider = _providers.get((base_url, api_key))
    if provider is None:
        provider = OpenAICompatProvider(base_url=base_url, api_key=api_key)
        _providers[base_url, api_key] = provider
    return provider
