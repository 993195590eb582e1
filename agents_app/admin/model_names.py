"""The models that an agent's form suggests, asked from its provider after the page is shown."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django import forms
from django.http import Http404, JsonResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST

from agents_app.admin.trial import may_look
from agents_app.models import Agent, ModelProvider
from agents_app.outbound.keys import KEY_CHARS, encrypted_key
from agents_app.providers.clients import is_key_name, model_place
from agents_app.providers.model_lists import suggested_models

if TYPE_CHECKING:
    from django.contrib.admin import ModelAdmin
    from django.http import HttpRequest, HttpResponse

_LISTING = [value for value in ModelProvider.values if value != ModelProvider.SCRIPTED]


class ModelPlaceForm(forms.Form):
    """The inputs of the agent's form that say where its model is."""

    provider = forms.ChoiceField(choices=[(value, value) for value in _LISTING])
    options__base_url = forms.CharField(max_length=500, required=False)
    options__api_key_env = forms.CharField(max_length=100, required=False)
    key = forms.CharField(max_length=KEY_CHARS, required=False)


@never_cache
@require_POST
def models_view(request: HttpRequest, page: ModelAdmin[Any], agent_id: str = "") -> HttpResponse:
    """Return the models of the provider that an unsaved form describes: {"models": [...]}.

    Without an id, the agent is new. An empty list means that nothing can be suggested. Needs the
    right to save the form: its key or the stored one is sent, to the place that it is for. Answers
    403 without, and 404 for an unknown id.
    """
    agent = Agent.objects.filter(pk=agent_id).first() if agent_id else None
    may = (
        page.has_change_permission(request, agent) if agent_id else page.has_add_permission(request)
    )
    if not may:
        return JsonResponse({"models": []}, status=403)
    if agent_id and agent is None:
        raise Http404
    form = ModelPlaceForm(request.POST)
    if not form.is_valid():
        return JsonResponse({"models": []})
    row = _row_of(form.cleaned_data, agent)
    user: Any = request.user
    models = [] if row is None else suggested_models(row, lambda: may_look(user))
    return JsonResponse({"models": list(models)})


def _row_of(values: dict[str, str], stored: Agent | None) -> Agent | None:
    """Return the unsaved agent of the inputs; None if the name of a key is not one."""
    variable, base_url = values["options__api_key_env"], values["options__base_url"]
    if variable and not is_key_name(variable):
        return None
    options = {"base_url": base_url, "api_key_env": variable}
    row = Agent(
        name="draft" if stored is None else stored.name,
        provider=values["provider"],
        options={name: value for name, value in options.items() if value},
        secret="" if stored is None else stored.secret,
    )
    if values["key"]:
        row.secret = encrypted_key(values["key"], model_place(row.provider, base_url or None))
    return row
