"""Operations on rows in the admin: a page asks for a reason, a POST does it, the audit keeps it.

An operation calls the service that a request of a client calls. It needs a right of its own. A form
that is sent twice does its work once: the service finds the work done, and what changes again and
again carries `seen`, the state of the row when the form was made.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final

from django import forms
from django.contrib import messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.contrib.admin.utils import quote, unquote
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import path, reverse

from audit_app.admin.records import AuditedAdmin

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from django.db.models import Model, QuerySet
    from django.http import HttpRequest, HttpResponse
    from django.http.response import HttpResponseBase
    from django.urls import URLPattern

    from audit_app.record import AuditAction

MOST: Final = 100
"""Rows that one confirmed action of a list is done to."""


class OperationRefused(Exception):
    """The operation cannot be done; the message says why, to an operator."""


class ReasonForm(forms.Form):
    """Why, for the audit; `seen` is what the operator saw of the row."""

    reason = forms.CharField(max_length=500, help_text="It is kept in the audit.")
    seen = forms.CharField(required=False, max_length=80, widget=forms.HiddenInput)


@dataclass(frozen=True, kw_only=True)
class Operation:
    """The operations that an operator may run on a row of one model.

    `run` is given the row, the cleaned form and the request; it returns what happened, or "" where
    there was nothing to do any more, and raises OperationRefused. The audit records it as `act`;
    None: the service that `run` calls records it. `facts` says what is to be known
    before, `offered` whether it makes sense for a row, `seen` what the form keeps of it. `in_list`
    offers it for several rows of a list, too.
    """

    name: str
    label: str
    right: str
    act: AuditAction | None
    run: Callable[[Any, dict[str, Any], HttpRequest], str]
    facts: Callable[[Any], str] = str
    offered: Callable[[Any], bool] = bool
    seen: Callable[[Any], str] = lambda _: ""
    form: type[ReasonForm] = ReasonForm
    in_list: bool = False


class OperationsAdmin(AuditedAdmin):
    """An admin whose rows have operations: a button on their page, and in lists an action."""

    operations: ClassVar[Sequence[Operation]] = ()
    change_form_template = "admin/audit_app/change_form.html"

    def operations_for(self, request: HttpRequest) -> list[Operation]:
        """Return the operations that a person may do."""
        return [one for one in self.operations if request.user.has_perm(one.right)]

    def row_links(self, request: HttpRequest, row: Any) -> list[dict[str, str]]:
        """Return the buttons of a row beside its operations: {url, label}."""
        del request, row
        return []

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        """Show a row, with the ways to what may be done with it."""
        row = self.get_object(request, unquote(object_id))
        links = []
        if row is not None:
            links = [
                *self.row_links(request, row),
                *(
                    {"url": self._address(row, one), "label": one.label}
                    for one in self.operations_for(request)
                    if one.offered(row)
                ),
            ]
        return super().change_view(
            request, object_id, form_url, {"links": links, **(extra_context or {})}
        )

    def get_urls(self) -> list[URLPattern]:
        """Add the page of each operation."""
        name = f"{self.opts.app_label}_{self.opts.model_name}_operate"
        view = self.admin_site.admin_view(self.operate_view)
        return [path("<path:object_id>/operate/<slug:name>/", view, name=name), *super().get_urls()]

    def get_actions(self, request: HttpRequest) -> Any:
        """Offer the operations of lists to those who may do them."""
        actions = super().get_actions(request)
        for one in self.operations_for(request):
            if one.in_list and self.opts.label and "_popup" not in request.GET:
                actions[one.name] = (_list_action(one), one.name, f"{one.label}: the selected rows")
        return actions

    def operate_view(self, request: HttpRequest, object_id: str, name: str) -> HttpResponseBase:
        """Ask for a reason, and do it; a refusal is shown in the form."""
        one = self._operation(request, name)
        row = self.get_object(request, unquote(object_id))
        if row is None or not self.has_view_permission(request, row):
            raise Http404
        form = one.form(request.POST or None, initial={"seen": one.seen(row)})
        if request.method == "POST" and form.is_valid():
            try:
                done = one.run(row, form.cleaned_data, request)
            except OperationRefused as error:
                form.add_error(None, str(error))
            else:
                return self.finish_operation(request, one, row, form.cleaned_data, done)
        context = {
            **self.admin_site.each_context(request),
            "opts": self.opts,
            "original": row,
            "title": one.label,
            "facts": one.facts(row),
            "form": form,
        }
        return TemplateResponse(request, "admin/audit_app/operate.html", context)

    def finish_operation(
        self,
        request: HttpRequest,
        one: Operation,
        row: Model,
        wanted: dict[str, Any],
        done: str,
    ) -> HttpResponseBase:
        """Record what was done, say it, and lead back to the row.

        `wanted` is the cleaned form, with what `run` added.
        """
        self.conclude(request, one, row, wanted["reason"], done)
        if done:
            self.message_user(request, f"{one.label}: {done}.", messages.SUCCESS)
        else:
            self.message_user(request, f"{one.label}: there was nothing to do.", messages.INFO)
        return HttpResponseRedirect(self._page_of(row))

    def conclude(
        self, request: HttpRequest, one: Operation, row: Model, reason: str, done: str
    ) -> None:
        """Record what was done to a row, where something was."""
        if done and one.act is not None:
            self.log_act(request, row, one.act, f"{one.label}: {done}", reason)
        elif done:
            # Of Django's own history alone: the audit has it.
            super(AuditedAdmin, self).log_change(request, row, f"{one.label}: {done} ({reason})")

    def operate_on_list(
        self, request: HttpRequest, one: Operation, rows: QuerySet[Any]
    ) -> HttpResponse | None:
        """Ask once for a reason for several rows, then do it to each."""
        chosen = list(rows[:MOST])
        is_sent = "reason" in request.POST
        form = ReasonForm(request.POST if is_sent else None)
        if not (is_sent and form.is_valid()):
            context = {
                **self.admin_site.each_context(request),
                "opts": self.opts,
                "title": one.label,
                "facts": [one.facts(row) for row in chosen if one.offered(row)],
                "passed": sum(not one.offered(row) for row in chosen),
                "form": form,
                "chosen": [row.pk for row in chosen],
                "checkbox": ACTION_CHECKBOX_NAME,
                "action": one.name,
            }
            return TemplateResponse(request, "admin/audit_app/operate_on_list.html", context)
        reason, count = form.cleaned_data["reason"], 0
        for row in chosen:
            if not one.offered(row):
                continue
            try:
                done = one.run(row, {**form.cleaned_data, "seen": one.seen(row)}, request)
            except OperationRefused as error:
                self.message_user(request, f"{row}: {error}", messages.ERROR)
                continue
            self.conclude(request, one, row, reason, done)
            count += bool(done)
        self.message_user(request, f"{one.label}: done to {count} of {len(chosen)}.")
        return None

    def _operation(self, request: HttpRequest, name: str) -> Operation:
        one = next((one for one in self.operations if one.name == name), None)
        if one is None:
            raise Http404
        if not request.user.has_perm(one.right):
            raise PermissionDenied
        return one

    def _address(self, row: Model, one: Operation) -> str:
        name = f"admin:{self.opts.app_label}_{self.opts.model_name}_operate"
        return reverse(name, args=[quote(row.pk), one.name])

    def _page_of(self, row: Model) -> str:
        name = f"admin:{self.opts.app_label}_{self.opts.model_name}_change"
        return reverse(name, args=[quote(row.pk)])


def _list_action(one: Operation) -> Any:
    def action(
        admin: OperationsAdmin, request: HttpRequest, rows: QuerySet[Any]
    ) -> HttpResponse | None:
        return admin.operate_on_list(request, one, rows)

    return action
