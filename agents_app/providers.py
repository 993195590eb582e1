"""From an agent's row to the model that answers for it.

The law: keys come from the environment, never from a row, and a provider's own key goes to its own
server only.
"""

import os
import re
from collections.abc import Mapping
from functools import partial
from typing import Any, NoReturn

import msgspec

from agents_app.agent_options import problem_of
from agents_app.scripts import SCRIPTS
from agents_app.selectors import AgentSpec
from uamp.session import ResponseFormat
from upp import ErrorCode, ExponentialBackoff, Model, ProviderConfig, UPPError
from upp.providers.anthropic import AnthropicProvider
from upp.providers.google import GoogleProvider
from upp.providers.openai_compat import OpenAICompatProvider
from upp.providers.scripted import ScriptedModel
from upp.providers.transport import HttpProvider

RETRY = ExponentialBackoff(max_attempts=2, base_delay=0.5, max_delay=3.0)
"""Before the first piece of an answer; people who have to wait longer are told so."""

_KINDS: Mapping[str, type[HttpProvider]] = {
    "anthropic": AnthropicProvider,
    "google": GoogleProvider,
    "openai_compat": OpenAICompatProvider,
}
_providers: dict[tuple[str | float | None, ...], HttpProvider] = {}


def build_model(spec: AgentSpec, *, model: str | None = None) -> Model:
    """Return the model of an agent; `model` is taken only when the agent's options allow it.

    Options of a scripted agent: `script` (its own name by default), `delay` (seconds before each
    piece). Of the others: `base_url`, `api_key_env` (the name of an environment variable; without
    it a `base_url` of its own gets no key), `api_version`, `models` (what a client may choose),
    `timeout` (seconds that the server may be silent, 300 by default).
    Raises UPPError MODEL_NOT_FOUND for an unknown script or provider, INVALID_REQUEST for an agent
    without a model or with options that are none, AUTHENTICATION_FAILED when the named variable is
    not set.
    """
    problem = problem_of(spec.provider, spec.options)
    if problem is not None:
        _refuse(spec, f"its options are wrong: {problem.rstrip('.')}", ErrorCode.INVALID_REQUEST)
    if spec.provider == "scripted":
        name = str(spec.options.get("script", spec.name))
        script = SCRIPTS.get(name)
        if script is None:
            _refuse(spec, f"there is no script named {name!r}", ErrorCode.MODEL_NOT_FOUND)
        delay = float(spec.options.get("delay", 0.0))
        return ScriptedModel(script=partial(script, spec), delay=delay, model_id=name)
    if spec.provider not in _KINDS:
        message = f"there is no provider named {spec.provider!r}"
        _refuse(spec, message, ErrorCode.MODEL_NOT_FOUND)
    chosen = model if model in spec.options.get("models", ()) else spec.model
    if not chosen:
        _refuse(spec, "it names no model", ErrorCode.INVALID_REQUEST)
    return _provider(spec)(chosen)


_KEY_NAME = re.compile(r"[A-Z][A-Z0-9_]*_API_KEY")


def vendor_params(
    spec: AgentSpec, overrides: Any, response_format: ResponseFormat | None = None
) -> dict[str, Any]:
    """Return the vendor's parameters: the agent's `options.params`, then a request's overrides.

    The overrides temperature and max_tokens get the vendor's names. A response format is OpenAI's
    own; the other providers read the request's structure instead (UAMP §8.3). None of them asks for
    more tokens than the agent may write.
    """
    params = dict(spec.options.get("params", {}))
    given = {
        name: overrides[name]
        for name in ("temperature", "max_tokens")
        if overrides.get(name) is not None
    }
    if spec.max_output_tokens is not None:
        _bound_tokens(spec, params, given)
    if spec.provider == "google":
        names = {"temperature": "temperature", "max_tokens": "maxOutputTokens"}
        config = {names[name]: value for name, value in given.items()}
        if config:
            params["generationConfig"] = {**params.get("generationConfig", {}), **config}
        return params
    params |= given
    if response_format is not None and spec.provider != "anthropic":
        params["response_format"] = msgspec.to_builtins(response_format)
    return params


def _bound_tokens(spec: AgentSpec, params: dict[str, Any], given: dict[str, Any]) -> None:
    """Let nobody ask for more tokens than the agent may write, under none of the vendors' names."""
    most = spec.max_output_tokens
    if spec.provider == "google":
        configured = params.get("generationConfig", {}).get("maxOutputTokens")
    else:
        configured = params.get("max_tokens")
    if "max_completion_tokens" in params:
        # Models that take this name refuse the other one.
        params["max_completion_tokens"] = min(params["max_completion_tokens"], most)
        given.pop("max_tokens", None)
        return
    wanted = given.get("max_tokens", configured)
    given["max_tokens"] = most if wanted is None else min(wanted, most)


def at_most(params: Mapping[str, Any], tokens: int) -> dict[str, Any]:
    """Return parameters that ask for so many tokens at the most, where they name a number.

    A model that thinks needs one token more than it may think with.
    """
    thinking = params.get("thinking")
    thought = thinking.get("budget_tokens", 0) if isinstance(thinking, dict) else 0
    bounded = dict(params)
    for name in ("max_tokens", "max_completion_tokens"):
        if name in bounded:
            bounded[name] = min(bounded[name], max(tokens, thought + 1))
    config = bounded.get("generationConfig", {})
    if "maxOutputTokens" in config:
        limit = min(config["maxOutputTokens"], tokens)
        bounded["generationConfig"] = {**config, "maxOutputTokens": limit}
    return bounded


async def close_providers() -> None:
    """Close the running loop's connections to models; for the end of the process."""
    for provider in _providers.values():
        await provider.aclose()


def is_key_name(variable: object) -> bool:
    """Return whether an environment variable may be sent to a provider as its key.

    Who edits agents chooses the address too: the server's own secrets must not have such a name.
    """
    return isinstance(variable, str) and bool(_KEY_NAME.fullmatch(variable))


def _provider(spec: AgentSpec) -> HttpProvider:
    base_url, api_version = spec.options.get("base_url"), spec.options.get("api_version")
    timeout = spec.options.get("timeout")
    variable = spec.options.get("api_key_env")
    if variable and not is_key_name(variable):
        _refuse(spec, f"{variable} is not the name of a key", ErrorCode.AUTHENTICATION_FAILED)
    api_key = os.environ.get(variable) if variable else None
    if variable and not api_key:
        message = f"the environment variable {variable} is not set"
        _refuse(spec, message, ErrorCode.AUTHENTICATION_FAILED)
    # One provider keeps one pool of connections.
    kept = (spec.provider, base_url, api_version, api_key, timeout)
    if kept not in _providers:
        config = ProviderConfig(
            base_url=base_url,
            api_key=api_key,
            api_version=api_version,
            timeout=timeout,
            retry=RETRY,
        )
        _providers[kept] = _KINDS[spec.provider](config=config)
    return _providers[kept]


def _refuse(spec: AgentSpec, message: str, code: ErrorCode) -> NoReturn:
    raise UPPError(f"Agent {spec.name}: {message}.", code=code, provider=spec.provider)
