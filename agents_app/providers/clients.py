"""The client of the model named in an agent's row.

A key comes from the environment or, encrypted for one place, from the row; a key of a vendor goes
to that vendor only.
"""

import logging
import os
import re
from collections.abc import Mapping
from functools import partial
from typing import Any, NamedTuple, NoReturn, Protocol, TypeAlias

import httpx
from django.conf import settings

from agents_app.outbound.keys import Undecipherable, key_for
from agents_app.outbound.rules import Target, Unreachable
from agents_app.providers.addresses import (
    guarded_connector,
    is_vendors,
    may_take,
    place_of,
    target_of,
)
from agents_app.providers.options import problem_of
from agents_app.providers.row_params import row_params
from agents_app.providers.scripts import SCRIPTS
from agents_app.providers.vendor_extensions import fitted_thinking, vendor_options
from agents_app.selectors import AgentSpec
from uamp.types.generation import GenerationOptions
from upp import ErrorCode, ExponentialBackoff, Model, ProviderConfig, UPPError
from upp.providers.anthropic import AnthropicProvider
from upp.providers.google import GoogleProvider
from upp.providers.openai_compat import OpenAICompatProvider
from upp.providers.parameters import vendor_parameters
from upp.providers.realtime.provider import OpenAIRealtimeProvider
from upp.providers.realtime.request import SPEECH, TRANSCRIPTION
from upp.providers.scripted import ScriptedModel

logger = logging.getLogger(__name__)

RETRY = ExponentialBackoff(max_attempts=2, base_delay=0.5, max_delay=3.0)
"""Retries before the first piece of an answer. A vendor that asks for a longer wait is an error."""

_Provider: TypeAlias = (
    AnthropicProvider | GoogleProvider | OpenAICompatProvider | OpenAIRealtimeProvider
)
_KINDS: Mapping[str, type[_Provider]] = {
    "anthropic": AnthropicProvider,
    "google": GoogleProvider,
    "openai_compat": OpenAICompatProvider,
    "openai_realtime": OpenAIRealtimeProvider,
}
_providers: dict[tuple[str | float | None, ...], _Provider] = {}


def build_model(
    spec: AgentSpec, *, model: str | None = None, extensions: Mapping[str, Any] | None = None
) -> Model:
    """Return the model of an agent; `model` is used only if the agent's options allow it.

    The same applies to the vendor's model in a session's `extensions`, which is used if `model` is
    not.

    Options of a scripted agent: `script` (its own name by default), `delay` (seconds before each
    piece). Options of the others: `base_url`, `api_key_env` (an environment variable; without it a
    `base_url` gets the key that the row stores for it, or none), `api_version`, `models` (what
    a client may choose), `timeout` (seconds that the server may be silent, 300 by default).
    `agents_app.providers.addresses` decides where `base_url` may point and where a key may go.
    Raises UPPError MODEL_NOT_FOUND for an unknown script or provider, INVALID_REQUEST for an agent
    without a model or with invalid options, AUTHENTICATION_FAILED if the named variable is not set.
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
    allowed = spec.options.get("models", ())
    of_vendor = vendor_options(spec.provider, extensions or {}).get("model")
    chosen = next((name for name in (model, of_vendor) if name in allowed), spec.model)
    if not chosen:
        _refuse(spec, "it has no model", ErrorCode.INVALID_REQUEST)
    return _provider(spec)(chosen)


_KEY_NAME = re.compile(r"[A-Z][A-Z0-9_]*_API_KEY")
_GENERATION = GenerationOptions.__struct_fields__


def vendor_params(spec: AgentSpec, overrides: Any) -> dict[str, Any]:
    """Return the vendor's parameters: the agent's `options.params`, then a request's overrides.

    In the overrides, `extensions` are a session's options by vendor. GenerationOptions take
    precedence and are renamed to the vendor's parameters. Tool options are left out:
    `runtime.tool_choice` adds them to requests with tools. The token limit never exceeds that of
    the agent.
    """
    params = row_params(spec.provider, spec.options)
    requested = vendor_options(spec.provider, overrides.get("extensions") or {})
    requested.pop("model", None)
    requested |= _generation_params(spec, overrides)
    if spec.provider == "google":
        if requested:
            params["generationConfig"] = _merged_config(
                params.get("generationConfig", {}), requested
            )
    else:
        if "max_completion_tokens" in requested:
            params.pop("max_tokens", None)
            requested.pop("max_tokens", None)
        params |= requested
    limits = {
        name: overrides[name]
        for name in ("temperature", "max_tokens")
        if overrides.get(name) is not None
    }
    _limit_tokens(spec, params, limits)
    if spec.provider == "google":
        names = {"temperature": "temperature", "max_tokens": "maxOutputTokens"}
        config = {names[name]: value for name, value in limits.items()}
        if config:
            params["generationConfig"] = {**params.get("generationConfig", {}), **config}
        return params
    params |= limits
    if spec.provider == "openai_realtime":
        return params | _speech_params(spec, overrides)
    if spec.provider == "anthropic" and "thinking" in requested:
        params = fitted_thinking(params)
    return params


def _speech_params(spec: AgentSpec, overrides: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters for spoken answers and for transcribing spoken input."""
    params: dict[str, Any] = {}
    if (speech := overrides.get("speech")) is not None:
        voice = speech.get("voice") or spec.options.get("voice")
        params[SPEECH] = {"voice": voice, "format": speech["format"]}
    if model := spec.options.get("transcription"):
        params[TRANSCRIPTION] = {"model": model}
    return params


def _generation_params(spec: AgentSpec, overrides: Mapping[str, Any]) -> dict[str, Any]:
    """Return a request's options that apply to every inference, as vendor parameters."""
    options = {
        name: value
        for name in _GENERATION
        if (value := overrides.get(name)) is not None and name not in ("temperature", "max_tokens")
    }
    return vendor_parameters(spec.provider, options) if options else options


def _merged_config(configured: Mapping[str, Any], requested: Mapping[str, Any]) -> dict[str, Any]:
    """Merge a request's options into Google's `generationConfig`.

    The API rejects a thinking level together with a thinking budget.
    """
    merged = {**configured, **requested}
    if "thinkingConfig" in requested:
        thinking = dict(configured.get("thinkingConfig") or {})
        thinking.pop("thinkingLevel", None)
        merged["thinkingConfig"] = thinking | requested["thinkingConfig"]
    return merged


def _limit_tokens(spec: AgentSpec, params: dict[str, Any], limits: dict[str, Any]) -> None:
    """Limit the tokens of a request to those of the agent, under the name that the vendor uses.

    Models that use `max_completion_tokens` reject `max_tokens`. Of parameters with both, the
    smaller one counts.
    """
    name = "max_tokens"
    if spec.provider == "google":
        configured = [params.get("generationConfig", {}).get("maxOutputTokens")]
    else:
        if "max_completion_tokens" in params:
            name = "max_completion_tokens"
        configured = [params.pop("max_tokens", None), params.pop("max_completion_tokens", None)]
    if "max_tokens" in limits:
        configured = [limits.pop("max_tokens")]
    tokens = [limit for limit in (*configured, spec.max_output_tokens) if limit is not None]
    if tokens:
        limits[name] = min(tokens)


def with_token_limit(params: Mapping[str, Any], tokens: int) -> dict[str, Any]:
    """Return parameters with every token limit capped at `tokens`.

    A model that thinks needs at least one token more than its thinking budget. Members that only
    look like a limit, as in the parameters of a remote agent, stay as they are.
    """
    thinking = params.get("thinking")
    budget = thinking.get("budget_tokens") if isinstance(thinking, dict) else None
    thought = budget if isinstance(budget, int | float) else 0
    bounded = dict(params)
    for name in ("max_tokens", "max_completion_tokens"):
        if isinstance(bounded.get(name), int | float):
            bounded[name] = min(bounded[name], max(tokens, thought + 1))
    config = bounded.get("generationConfig")
    if isinstance(config, dict) and isinstance(config.get("maxOutputTokens"), int | float):
        limit = min(config["maxOutputTokens"], tokens)
        bounded["generationConfig"] = {**config, "maxOutputTokens": limit}
    return bounded


async def close_providers() -> None:
    """Close the running loop's connections to models, at the end of the process."""
    for provider in _providers.values():
        await provider.aclose()


def is_key_name(variable: object) -> bool:
    """Return whether the value of an environment variable may be sent to a provider as a key.

    People who edit agents choose the address as well, so the server's own secrets must not have
    such a name.
    """
    return isinstance(variable, str) and bool(_KEY_NAME.fullmatch(variable))


class ModelRow(Protocol):
    """The model's place and key in an agent's row or spec."""

    @property
    def name(self) -> str:
        """The agent's name, for messages."""

    @property
    def provider(self) -> str:
        """The kind of its provider."""

    @property
    def options(self) -> Any:
        """The options; only `base_url` and `api_key_env` are read here."""

    @property
    def secret(self) -> str:
        """The stored key, encrypted; "" for none."""


class ModelAccess(NamedTuple):
    """The address of a row's model, the key that may be sent there, and the target of the address.

    Without a key, requests to the operator's or the vendor's address carry the operator's.
    """

    address: str
    api_key: str | None
    target: Target | None


def access_of(row: ModelRow) -> ModelAccess:
    """Return the access that a row gives; raises UPPError if its address or key is refused."""
    base_url, variable = row.options.get("base_url"), row.options.get("api_key_env")
    if variable and not is_key_name(variable):
        _refuse(row, f"{variable} is not the name of a key", ErrorCode.AUTHENTICATION_FAILED)
    api_key = os.environ.get(variable) if variable else None
    if variable and not api_key:
        message = f"the environment variable {variable} is not set"
        _refuse(row, message, ErrorCode.AUTHENTICATION_FAILED)
    target = _target(row, base_url)
    address = model_address(row.provider, base_url)
    if variable and not may_take(variable, address):
        _refuse(
            row,
            f"{variable} is not for {httpx.URL(address).host}; an operator can allow it with"
            " UAMP_MODEL_ALLOW_HOSTS",
            ErrorCode.AUTHENTICATION_FAILED,
        )
    if not variable:
        api_key = _stored_key(row, address)
    return ModelAccess(address, api_key, target)


def _provider(spec: AgentSpec) -> _Provider:
    base_url, api_version = spec.options.get("base_url"), spec.options.get("api_version")
    timeout = spec.options.get("timeout")
    _, api_key, target = access_of(spec)
    # Each provider has its own connection pool.
    is_allowed = None if target is None else target.is_allowed
    cache_key = (spec.provider, base_url, api_version, api_key, timeout, is_allowed)
    if cache_key not in _providers:
        config = ProviderConfig(
            base_url=base_url,
            api_key=api_key,
            api_version=api_version,
            timeout=timeout,
            retry=RETRY,
            connector=None if target is None else partial(guarded_connector, target),
            # Who chose another address may also have written the server that counts there.
            hidden_tokens=(
                None if counts_are_trusted(spec) else settings.UAMP_RESERVE_REASONING_TOKENS
            ),
        )
        _providers[cache_key] = _KINDS[spec.provider](config=config)
    return _providers[cache_key]


def counts_are_trusted(row: ModelRow) -> bool:
    """Return whether the model of a row runs at its vendor or at a server of the operator."""
    base_url = row.options.get("base_url")
    return base_url is None or is_vendors(base_url)


def model_address(provider: str, base_url: str | None) -> str:
    """Return the address of a provider's requests; without `base_url`, the operator's choice."""
    return base_url or _KINDS[provider]().address


def model_place(provider: str, base_url: str | None) -> str:
    """Return the address of a provider's requests as a place of keys; "" if it is invalid."""
    return place_of(model_address(provider, base_url))


def operators_key(provider: str) -> str | None:
    """Return the environment's key, which requests without a `base_url` carry, if it has one."""
    return _KINDS[provider]().environment()[1] or None


def _stored_key(spec: ModelRow, address: str) -> str | None:
    try:
        return key_for(spec.secret, place_of(address))
    except Undecipherable:
        message = "its key cannot be read, because SECRET_KEY has changed; enter the key again"
        _refuse(spec, message, ErrorCode.AUTHENTICATION_FAILED)


def _target(spec: ModelRow, base_url: str | None) -> Target | None:
    """Return the target of a row's own address, or None for the operator's or the vendor's."""
    if base_url is None:
        return None
    try:
        return target_of(base_url)
    except Unreachable as error:
        logger.warning("the base_url of agent %s is not allowed: %s", spec.name, error.reason)
        message = (
            "its base_url may not be asked; an operator can allow it with UAMP_MODEL_ALLOW_HOSTS"
        )
        _refuse(spec, message, ErrorCode.INVALID_REQUEST)


def _refuse(spec: ModelRow, message: str, code: ErrorCode) -> NoReturn:
    raise UPPError(f"Agent {spec.name}: {message}.", code=code, provider=spec.provider)
