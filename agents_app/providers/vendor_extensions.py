"""Options of a model for one vendor, as in `extensions.openai` (UAMP §5.1).

Only what changes how a model answers is taken, each option with a type and bounds. An option that
is not listed here is ignored and named in the log: among them are those that cost more without
being part of an answer's price, such as `n` and `service_tier`.
"""

import logging
from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal

import msgspec

from uamp.types.bounds import MAX_TOKENS, Penalty, Seed, Share, Temperature, Tokens
from uamp.types.generation import ReasoningEffort, StopWords, Verbosity

logger = logging.getLogger(__name__)

THINKING_TOKENS: Final = 4096
"""The thinking budget of Anthropic's models where a client only turns thinking on."""
_LEAST_THINKING: Final = 1024

_Int32 = Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)]
_TopK = Annotated[int, msgspec.Meta(ge=1, le=10_000)]
_Word = Annotated[str, msgspec.Meta(max_length=200)]
_Stops = Annotated[tuple[_Word, ...], msgspec.Meta(max_length=16)]


class _VendorParams(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    model: _Word | None = None
    temperature: Temperature | None = None
    top_p: Share | None = None


class _OpenAI(_VendorParams, frozen=True, kw_only=True, omit_defaults=True):
    max_tokens: Tokens | None = None
    max_completion_tokens: Tokens | None = None
    frequency_penalty: Penalty | None = None
    presence_penalty: Penalty | None = None
    seed: Seed | None = None
    stop: StopWords | None = None
    reasoning_effort: ReasoningEffort | None = None
    verbosity: Verbosity | None = None
    parallel_tool_calls: bool | None = None


class _Thinking(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    type: Literal["enabled", "disabled", "adaptive"]
    budget_tokens: Annotated[int, msgspec.Meta(ge=_LEAST_THINKING, le=MAX_TOKENS)] | None = None


class _Anthropic(_VendorParams, frozen=True, kw_only=True, omit_defaults=True):
    max_tokens: Tokens | None = None
    top_k: _TopK | None = None
    stop_sequences: _Stops | None = None
    thinking: bool | _Thinking | None = None


class _Google(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    model: _Word | None = None
    temperature: Temperature | None = None
    top_p: Share | None = None
    top_k: _TopK | None = None
    max_output_tokens: Tokens | None = None
    seed: _Int32 | None = None
    stop_sequences: _Stops | None = None


_KINDS: Final[Mapping[str, type[_OpenAI | _Anthropic | _Google]]] = {
    "openai": _OpenAI,
    "anthropic": _Anthropic,
    "google": _Google,
}
_VENDOR_OF: Final = {"openai_compat": "openai", "anthropic": "anthropic", "google": "google"}


def problem_of_extensions(extensions: Mapping[str, Any]) -> str | None:
    """Return what is wrong with the options of any vendor, in words for a client; None for nothing.

    Options that a vendor is not asked for here are ignored, as unknown fields are (UAMP §14.3).
    """
    for vendor, kind in _KINDS.items():
        given = extensions.get(vendor)
        if given is None:
            continue
        try:
            msgspec.convert(given, kind)
        except msgspec.ValidationError as error:
            return f"session.extensions.{vendor}: {error}"
        unknown = sorted(set(given) - {field.encode_name for field in msgspec.structs.fields(kind)})
        if unknown:
            logger.info("options of %s that are ignored: %.200s", vendor, ", ".join(unknown))
    return None


def vendor_options(provider: str, extensions: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a client wants of the vendor that answers, under the vendor's own names.

    Options of other vendors count for nothing, as do those that were kept before they had bounds.
    """
    vendor = _VENDOR_OF.get(provider, "")
    given = extensions.get(vendor)
    if given is None:
        return {}
    try:
        options: dict[str, Any] = msgspec.to_builtins(msgspec.convert(given, _KINDS[vendor]))
    except msgspec.ValidationError as error:
        logger.warning("the options of %s of a session are ignored: %s", vendor, error)
        return {}
    if "thinking" in options and not isinstance(options["thinking"], dict):
        enabled = {"type": "enabled", "budget_tokens": THINKING_TOKENS}
        options["thinking"] = enabled if options["thinking"] else {"type": "disabled"}
    return options


def fitted_thinking(params: dict[str, Any]) -> dict[str, Any]:
    """Return Anthropic's parameters with less thinking than `max_tokens`, as its API demands.

    Where too little is left to think with, the model does not think.
    """
    thinking, most = params.get("thinking"), params.get("max_tokens")
    if not isinstance(thinking, dict) or most is None or thinking.get("budget_tokens", 0) < most:
        return params
    if most <= _LEAST_THINKING:
        return {name: value for name, value in params.items() if name != "thinking"}
    return {**params, "thinking": {**thinking, "budget_tokens": most - 1}}
