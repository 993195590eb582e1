"""A question to an agent with the values of its form, before they are saved."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec
from asgiref.sync import sync_to_async
from django.contrib import admin
from django.contrib.auth.models import User
from django.contrib.auth.views import redirect_to_login
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpResponse, HttpResponseNotAllowed
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.cache import never_cache

from agents_app.admin.trial import (
    PERMISSION,
    Trial,
    TrialForm,
    is_admitted,
    log_outcome,
    record_trial,
    too_many,
    try_agent,
)
from agents_app.models import Agent
from agents_app.pricing import FREE
from agents_app.selectors import spec_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from django.http import HttpRequest

    from agents_app.selectors import AgentSpec

DRAFT_ID: Final = "agent_draft"
"""The id of an agent with unsaved values: its calls count for no row's health or account."""
PREFIX: Final = "trial"
"""The prefix of the question's input, sent along with those of the agent's form."""


@never_cache
async def draft_view(request: HttpRequest, agent_id: str = "") -> HttpResponse:
    """Ask the agent that the form sent would save; return the outcome as a part of a page.

    Without an id, the agent is new. Nothing is saved and nothing is charged. Needs the right to try
    agents, and to change or add them; raises PermissionDenied without, Http404 for an unknown id.
    """
    user = await request.auser()
    if not (isinstance(user, User) and user.is_active and user.is_staff):
        return redirect_to_login(reverse("admin:index"), reverse("admin:login"))
    right = "agents_app.change_agent" if agent_id else "agents_app.add_agent"
    if not await user.ahas_perms([PERMISSION, right]):
        raise PermissionDenied
    if request.method != "POST":
        return HttpResponseNotAllowed(["POST"])
    question = TrialForm(request.POST, prefix=PREFIX)
    agent, spec, problems = await sync_to_async(_draft)(request, agent_id)
    if not question.is_valid():
        problems = [*(("Prompt", str(text)) for text in question.errors["prompt"]), *problems]
    if spec is None or problems:
        return await sync_to_async(_part)(request, problems=problems)
    if not await is_admitted(user):
        return await sync_to_async(_part)(request, problems=[("", too_many())], status=429)
    done = "Tried its unsaved form"
    await sync_to_async(record_trial)(request, agent, done)
    trial = await try_agent(spec, question.cleaned_data["prompt"], user_id=user.pk)
    if agent is not None:
        await sync_to_async(log_outcome)(user, agent, trial, done)
    return await sync_to_async(_part)(request, trial=trial)


def _draft(
    request: HttpRequest, agent_id: str
) -> tuple[Agent | None, AgentSpec | None, list[tuple[str, str]]]:
    """Return the stored agent, the spec of its form, and the form's problems as (label, text)."""
    page: Any = admin.site.get_model_admin(Agent)
    agent = Agent.objects.filter(pk=agent_id).first() if agent_id else None
    if agent_id and agent is None:
        raise Http404
    made = page.get_form(request, agent, change=agent is not None)
    # The form changes the instance that it gets; the caller needs the stored one.
    form = made(request.POST, instance=None if agent is None else Agent.objects.get(pk=agent_id))
    if not form.is_valid():
        problems = [
            (str(form.fields[name].label or name) if name in form.fields else "", text)
            for name, texts in form.errors.items()
            for text in texts
        ]
        return agent, None, problems
    draft = form.save(commit=False)
    draft.created_at = draft.created_at or timezone.now()
    spec = msgspec.structs.replace(
        spec_of(draft), id=DRAFT_ID, pricing=FREE, failures=0, retry_at=None
    )
    return agent, spec, []


def _part(
    request: HttpRequest,
    *,
    problems: Sequence[tuple[str, str]] = (),
    trial: Trial | None = None,
    status: int = 200,
) -> HttpResponse:
    context = {"problems": problems, "trial": trial}
    return render(request, "admin/agents_app/agent/draft_outcome.html", context, status=status)
