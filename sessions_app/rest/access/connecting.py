"""The page for connecting one's own agents: connect tokens, and the command to run.

The forms work without scripts and require a browser session. A script updates which agents have a
daemon (static/account/connecting.js).
"""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any, Final

from django import forms
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.exceptions import ValidationError
from django.http import Http404
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from agents_app import connections
from agents_app import selectors as agents
from agents_app.remote.health import last_failures
from agents_app.rest.rights import ALL
from agents_app.rest.views import address_of, caller
from sessions_app.access import connect_tokens, keys
from sessions_app.rest.access.account import counted

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse

PAGE: Final = "sessions_app:connecting"
# Key in the Django session for a new token, from the form until the page displays it.
NEW_TOKEN: Final = "new_connect_token"  # noqa: S105 a session key, not a secret
INSTALL: Final = 'pip install ./packaging/uamp ./packaging/upp "./packaging/uap[serve]"'
"""The command that installs `uap serve` in a checkout."""
INSTALL_WHEELS: Final = 'pip install --find-links dist "uamp-server-uap[serve]"'
"""The command that installs it from the wheels in the folder `dist`."""
FIRST_AGENT: Final = """\
import uap
from upp.providers.scripted import ScriptedProvider, Text


async def answer(request):
    yield Text(f"You said: {request.messages[-1].text}")


agent = uap.agent(model=ScriptedProvider(scripts={"answer": answer})("answer"))
"""
"""An agent that needs no model, as an example; it is the command's `my_agent.py`."""


class ConnectForm(forms.Form):
    """The name of the agent to connect."""

    agent = forms.CharField(max_length=64)


@require_safe
@never_cache
@login_required
def connecting(request: HttpRequest) -> HttpResponse:
    """Show the person's connect tokens and, once, a new one within its command."""
    # A HEAD request displays nothing, so the token must be kept for the page.
    new = request.session.pop(NEW_TOKEN, None) if request.method == "GET" else None
    return _page(request, ConnectForm(), new=new)


@require_POST
@never_cache
@login_required
@counted
def make_token(request: HttpRequest) -> HttpResponse:
    """Create a connect token for an agent, and redirect to the page that displays it once.

    A name that is not taken becomes a private agent of the person.
    """
    form = ConnectForm(request.POST)
    if not form.is_valid():
        return _page(request, form, status=400)
    try:
        agent, made = connect_tokens.issue(
            caller(request).pk, form.cleaned_data["agent"], by=ALL, address=address_of(request)
        )
    except (
        connections.NameNotYours,
        connections.TooManyConnectedAgents,
        keys.TooManyKeys,
    ) as error:
        form.add_error("agent", _problem(error))
        return _page(request, form, status=409)
    except ValidationError as error:
        form.add_error("agent", connections.problem_of(error))
        return _page(request, form, status=400)
    request.session[NEW_TOKEN] = {"agent": agent.name, "secret": made.secret}
    return redirect(PAGE)


@require_POST
@never_cache
@login_required
@counted
def revoke_token(request: HttpRequest, key_id: int) -> HttpResponse:
    """Revoke one of the person's own connect tokens; its daemon is disconnected."""
    user = caller(request)
    key = connect_tokens.find_token(user.pk, key_id)
    if key is None or not keys.revoke_key(key, by=user, address=address_of(request)):
        raise Http404
    messages.success(request, _("The token was revoked. The program that used it is disconnected."))
    return redirect(PAGE)


def command(request: HttpRequest, *, agent: str, secret: str) -> str:
    """Return the shell command that connects an agent."""
    server = request.build_absolute_uri("/").rstrip("/")
    address = f"ws{server.removeprefix('http')}"
    return (
        f"UAMP_CONNECT_TOKEN={shlex.quote(secret)} python -m uap serve my_agent:agent"
        f" --connect {shlex.quote(address)} --name {shlex.quote(agent)}"
    )


def _problem(error: Exception) -> str:
    match error:
        case connections.NameNotYours():
            return _("You can't use this name. Choose another one.")
        case connections.TooManyConnectedAgents():
            return _("You have the maximum number of connected agents.")
        case _:
            return _("You have the maximum number of keys. Revoke one first.")


def _page(
    request: HttpRequest,
    form: ConnectForm,
    *,
    new: dict[str, str] | None = None,
    status: int = 200,
) -> HttpResponse:
    context: dict[str, Any] = {"form": form, "tokens": _tokens(caller(request).pk)}
    if new is not None:
        context |= {
            "new": new,
            "command": command(request, **new),
            "install": INSTALL,
            "install_wheels": INSTALL_WHEELS,
            "first_agent": FIRST_AGENT,
        }
    return render(request, "sessions_app/connecting.html", context, status=status)


def _tokens(user_id: int) -> list[dict[str, Any]]:
    """Return a person's tokens with their agents: names, whether connected, last failures."""
    rows = connect_tokens.tokens_of(user_id)
    ids = [agent_id for row in rows for agent_id in row.agents or ()]
    names, online = agents.names_of(ids), connections.connected(ids)
    failures = last_failures(ids, owner_id=user_id)
    return [
        {
            "row": row,
            "agent": names.get(agent_id, ""),
            "is_connected": agent_id in online,
            "failure": failures.get(agent_id),
        }
        for row in rows
        for agent_id in row.agents or ()
    ]
