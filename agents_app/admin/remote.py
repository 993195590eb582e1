"""The page where an operator enters an address and sees which agent is behind it."""

import asyncio
import re
from urllib.parse import urlencode

from asgiref.sync import sync_to_async
from django import forms
from django.contrib import admin
from django.contrib.auth.models import User
from django.contrib.auth.views import redirect_to_login
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.cache import never_cache

from agents_app.admin.trial import is_admitted
from agents_app.models import Agent, RemoteProtocol
from agents_app.outbound.keys import KEY_CHARS
from agents_app.outbound.rules import URL_CHARS, Unreachable
from agents_app.remote.discovery import DiscoveredAgent, DiscoveredEndpoint, discover
from agents_app.remote.rules import NO_KEY, is_key

_ADD = "agents_app.add_agent"
_NO_NAME = re.compile(r"[^A-Za-z0-9_-]+")


class AddressForm(forms.Form):
    """The address of an agent, and the key for reading it."""

    url = forms.CharField(
        label="Address",
        max_length=URL_CHARS,
        widget=forms.URLInput(attrs={"size": 80, "placeholder": "https://agents.example/agents/a"}),
        help_text="The agent, the folder of its card, or an API such as https://host/v1.",
    )
    key = forms.CharField(
        required=False,
        max_length=KEY_CHARS,
        widget=forms.PasswordInput(attrs={"autocomplete": "off"}),
        help_text="Only if the address requires one. It is sent to this address and not stored.",
    )

    def clean_key(self) -> str:
        """Validate the key like those stored in rows."""
        key = str(self.cleaned_data["key"])
        if key and not is_key(key):
            raise forms.ValidationError(NO_KEY)
        return key


@never_cache
async def remote_view(request: HttpRequest) -> HttpResponse:
    """Show the form and the agent found at its address, without blocking a thread.

    Needs `agents_app.add_agent`; raises PermissionDenied without it.
    """
    user = await request.auser()
    if not (isinstance(user, User) and user.is_active and user.is_staff):
        return redirect_to_login(request.get_full_path(), reverse("admin:login"))
    if not await user.ahas_perm(_ADD):
        raise PermissionDenied
    form = AddressForm(request.POST if request.method == "POST" else None)
    agent, status = None, 200
    if form.is_valid():
        if await is_admitted(user):
            try:
                url, key = form.cleaned_data["url"].strip(), form.cleaned_data["key"]
                agent = await asyncio.to_thread(discover, url, key)
            except Unreachable as error:
                form.add_error("url", f"No agent was found there: {error.reason}.")
        else:
            status = 429
            form.add_error(None, "Too many attempts. Wait a moment.")
    return await sync_to_async(_page)(request, form, agent, status)


def _page(
    request: HttpRequest, form: AddressForm, agent: DiscoveredAgent | None, status: int
) -> HttpResponse:
    context = {
        **admin.site.each_context(request),
        "opts": Agent._meta,  # noqa: SLF001 the admin's templates need it
        "title": "Add a remote agent",
        "form": form,
        "found": agent,
        "ways": [] if agent is None else [_endpoint_row(agent, way) for way in agent.ways],
    }
    return render(request, "admin/agents_app/agent/remote.html", context, status=status)


def _endpoint_row(agent: DiscoveredAgent, way: DiscoveredEndpoint) -> dict[str, str]:
    """Return a way to call the agent for the page, with a link that opens the prefilled form."""
    name = _NO_NAME.sub("-", agent.name or way.model).strip("-._")[:64]
    values = {
        "kind": "remote",
        "url": way.url,
        "protocol": way.protocol,
        "model": way.model,
        "name": name,
        "description": agent.description,
        **({} if way.streams else {"streams": "0"}),
    }
    return {
        "protocol": str(RemoteProtocol(way.protocol).label),
        "url": way.url,
        "model": way.model,
        "add": f"{reverse('admin:agents_app_agent_add')}?{urlencode(values)}",
    }
