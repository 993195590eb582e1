"""Validation of the model options of a turn."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import msgspec

import uamp
from agents_app import connections
from agents_app.models import AgentKind
from agents_app.providers.options import VOICE
from agents_app.runtime.tool_choice import refused_options
from sessions_app import database
from sessions_app.response.request import run_request
from sessions_app.turn.targets import agent_spec
from uamp import ErrorCode, RemoteProtocolError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from agents_app.runtime.agent_run import RunRequest
    from agents_app.selectors import AgentSpec
    from chat_app.members.membership import AgentMember
    from sessions_app.response.request import ResponseRequest
    from uamp import events as ev

_VOICE: Final = re.compile(VOICE)
_OPTIONS: Final = ("model", *uamp.GenerationOptions.__struct_fields__)
# Every vendor accepts these, so no agent has to be checked.
_TAKEN: Final = frozenset({"model", "temperature", "max_tokens", "extensions", "speech"})
# What a daemon must announce to be sent it.
_DEMANDS: Final = frozenset(uamp.GenerationOptions.__struct_fields__) - _TAKEN
# Values that change nothing, which many clients always send, need no announcement; nor do empty
# lists and objects.
_NEUTRAL: Final = {
    "tool_choice": "auto",
    "parallel_tool_calls": True,
    "top_p": 1,
    "frequency_penalty": 0,
    "presence_penalty": 0,
}


def check_options(config: uamp.SessionConfig, response: ev.ResponseConfig) -> None:
    """Check the model options of the session and the response.

    A session's row may predate the current bounds. Raises RemoteProtocolError.
    """
    for of, chosen in (("session", config.voice), ("response", response.voice)):
        voice = None if chosen is None else chosen.voice_id
        if voice is not None and not _VOICE.fullmatch(voice):
            raise RemoteProtocolError(
                ErrorCode.INVALID_EVENT,
                "The name of a voice may have at most 64 letters, digits, - and _.",
                details={"param": f"{of}.voice.voice_id"},
            )
    values = {name: getattr(response, name) for name in _OPTIONS}
    options = {name: config.extensions.get(name) for name in _OPTIONS} | {
        name: msgspec.to_builtins(value) for name, value in values.items() if value is not None
    }
    try:
        msgspec.convert(options, uamp.ModelOptions)
    except msgspec.ValidationError as error:
        raise RemoteProtocolError(ErrorCode.INVALID_EVENT, f"{error}.") from None


async def check_taken(
    config: uamp.SessionConfig, overrides: ResponseRequest, targets: Iterable[AgentMember]
) -> None:
    """Check that all answering agents accept the options of the response and the client's tools.

    Raises RemoteProtocolError unsupported_parameter, which lists those refused.
    """
    request = run_request("", config, overrides, ())
    has_options = not request.params.keys() <= _TAKEN
    if not (has_options or request.tools or request.response_format):
        return
    for target in targets:
        spec = await agent_spec(target.agent_id)
        if spec.kind == AgentKind.CONNECTED:
            await _check_daemons(spec, request)
            continue
        refused = refused_options(spec, request) if has_options else []
        if refused:
            raise RemoteProtocolError(
                ErrorCode.UNSUPPORTED_PARAMETER,
                f"The model of {target.name} does not accept this: {', '.join(refused)}.",
                details={"parameters": refused, "agent": target.name},
            )


async def _check_daemons(spec: AgentSpec, request: RunRequest) -> None:
    """Raise RemoteProtocolError unless all daemons of an agent keep to the request's options."""
    has_tools = bool(request.tools or spec.tools)
    options = [
        name
        for name, value in request.params.items()
        if name in _DEMANDS and not _is_neutral(name, value, has_tools=has_tools)
    ]
    output = request.response_format
    if output is not None and output.type != "text":
        options.append("response_format")
    refused = await database.run(
        connections.refused_by_daemons, spec.id, options, with_tools=bool(request.tools)
    )
    if refused:
        names = ", ".join("the tools of clients" if n == "tools" else n for n in refused)
        raise RemoteProtocolError(
            ErrorCode.UNSUPPORTED_PARAMETER,
            f"{spec.name} is answered by a program that does not support {names}.",
            details={"parameters": refused, "agent": spec.name},
        )


def _is_neutral(name: str, value: object, *, has_tools: bool) -> bool:
    if name == "tool_choice" and not has_tools:
        return value in ("auto", "none")
    return value in ([], (), {}) or (name in _NEUTRAL and _NEUTRAL[name] == value)
