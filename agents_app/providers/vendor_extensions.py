"""Model options for one vendor, as in `extensions.openai` (UAMP §5.1).

Only options that change how a model answers are accepted, each with a type and bounds. Options that
are not listed here are ignored and logged, including those that would raise the cost beyond an
answer's price, such as `n` and `service_tier`.
"""

import logging
from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal

import msgspec

from uamp.types.bounds import MAX_TOKENS, Penalty, Seed, Share, Temperature, Tokens
from uamp.types.generation import ReasoningEffort, StopWords, Verbosity

logger = logging.getLogger(__name__)

THINKING_TOKENS: Final = 4096
"""The thinking budget of Anthropic's models if a client only turns thinking on."""
_MIN_THINKING: Final = 1024

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
    budget_tokens: Annotated[int, msgspec.Meta(ge=_MIN_THINKING, le=MAX_TOKENS)] | None = None


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
    """Return the fault in any vendor's options, for clients, or None.

    Unknown options are ignored, as unknown fields are (UAMP §14.3).
    """
    for vendor, kind in _KINDS.items():
        options = extensions.get(vendor)
        if options is None:
            continue
        try:
            msgspec.convert(options, kind)
        except msgspec.ValidationError as error:
            return f"session.extensions.{vendor}: {error}"
        unknown = sorted(
            set(options) - {field.encode_name for field in msgspec.structs.fields(kind)}
        )
        if unknown:
            logger.info("options of %s that are ignored: %.200s", vendor, ", ".join(unknown))
    return None


def vendor_options(provider: str, extensions: Mapping[str, Any]) -> dict[str, Any]:
    """Return a client's options for the answering vendor, under the vendor's own names.

    Options of other vendors are ignored, as are invalid ones stored before bounds existed.
    """
    vendor = _VENDOR_OF.get(provider, "")
    extension = extensions.get(vendor)
    if extension is None:
        return {}
    try:
        options: dict[str, Any] = msgspec.to_builtins(msgspec.convert(extension, _KINDS[vendor]))
    except msgspec.ValidationError as error:
        logger.warning("the options of %s of a session are ignored: %s", vendor, error)
        return {}
    if "thinking" in options and not isinstance(options["thinking"], dict):
        enabled = {"type": "enabled", "budget_tokens": THINKING_TOKENS}
        options["thinking"] = enabled if options["thinking"] else {"type": "disabled"}
    return options


def fitted_thinking(params: dict[str, Any]) -> dict[str, Any]:
    """Return Anthropic's parameters with a thinking budget below `max_tokens`, as the API requires.

    If too few tokens remain for thinking, it is turned off.
    """
    thinking, limit = params.get("thinking"), params.get("max_tokens")
    if not isinstance(thinking, dict) or limit is None or thinking.get("budget_tokens", 0) < limit:
        return params
    if limit <= _MIN_THINKING:
        return {name: value for name, value in params.items() if name != "thinking"}
    return {**params, "thinking": {**thinking, "budget_tokens": limit - 1}}
