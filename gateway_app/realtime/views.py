"""`POST /v1/realtime/client_secrets` (GA) and `/v1/realtime/sessions` (beta).

Each returns a secret that opens sockets to one agent. A page sends it instead of a key; the
sessions that it opens start with the configuration of this request.
"""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Annotated, Final, Literal

import msgspec
from django.http import HttpRequest, HttpResponse

from gateway_app.backend.agents.agent_speech import speech_for
from gateway_app.backend.agents.client_secrets import issue_secret
from gateway_app.http import dialect_view, read_body
from gateway_app.openai.errors import refused
from gateway_app.openai.refusals import refusal
from gateway_app.realtime.read import SessionFields
from gateway_app.realtime.session_events import session_event

if TYPE_CHECKING:
    from typing import Any

BETA_SECONDS: Final = 60
_Name = Annotated[str, msgspec.Meta(max_length=256)]
_Seconds = Annotated[int, msgspec.Meta(ge=10, le=7200)]


class SecretExpiry(msgspec.Struct, frozen=True, kw_only=True):
    """The lifetime of a secret, counted from its creation."""

    anchor: Literal["created_at"] = msgspec.field(default_factory=lambda: "created_at")
    seconds: _Seconds = 600


class BoundSessionFields(SessionFields, frozen=True, kw_only=True):
    """The configuration of the sessions.

    `model` names the agent, or a model if the path names the agent.
    """

    model: _Name | None = None


class SecretRequest(msgspec.Struct, frozen=True, kw_only=True):
    """The request body in the GA dialect."""

    session: BoundSessionFields = msgspec.field(default_factory=BoundSessionFields)
    expires_after: SecretExpiry = msgspec.field(default_factory=SecretExpiry)


@dialect_view(refusal, "POST", protocol="realtime", takes_visitors=False)
async def client_secrets(request: HttpRequest, name: str = "") -> HttpResponse:
    """Return a secret and the session that it opens, in the GA format."""
    body = read_body(request, SecretRequest)
    session, secret = await _issued(
        request, name, body.session, seconds=body.expires_after.seconds, is_ga=True
    )
    return _answer({**secret, "session": session})


@dialect_view(refusal, "POST", protocol="realtime", takes_visitors=False)
async def sessions(request: HttpRequest, name: str = "") -> HttpResponse:
    """Return a session and the secret that opens it, in the beta format."""
    body = read_body(request, BoundSessionFields)
    session, secret = await _issued(request, name, body, seconds=BETA_SECONDS, is_ga=False)
    return _answer({**session, "client_secret": secret})


async def _issued(
    request: HttpRequest,
    agent: str,
    session: BoundSessionFields,
    *,
    seconds: int,
    is_ga: bool,
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Issue a secret and return it with its session; raises RemoteProtocolError."""
    named = agent or session.model
    if not named:
        raise refused("session.model" if is_ga else "model", "Specify an agent.")
    speaks = bool((await speech_for(request, named)).speaks)
    fields = session.merged_into(SessionFields(), speaks=speaks)
    model = session.model if agent else None
    config = {
        "session": msgspec.to_builtins(fields),
        "model": model,
        "is_ga": is_ga,
    }
    spec_name, secret, expires_at = await issue_secret(
        request, agent=named, config=config, seconds=seconds
    )
    session_id = f"sess_{uuid.uuid4().hex}"
    event = session_event("", session_id, model or spec_name, fields, is_ga=is_ga, speaks=speaks)
    return event["session"], {"value": secret, "expires_at": int(expires_at.timestamp())}


def _answer(body: dict[str, Any]) -> HttpResponse:
    response = HttpResponse(msgspec.json.encode(body), content_type="application/json")
    response["Cache-Control"] = "no-store"
    return response
