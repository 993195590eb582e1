"""Operations on rows in the admin: asked for with a reason, run by a POST, kept in the audit.

An operation calls the same service as a client's request, and requires a separate right. A form
that is sent twice works once: the service finds the work done, and for repeatable changes the form
carries `seen`, the state of the row when the form was rendered.
"""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final

from django import forms
from django.contrib import messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.contrib.admin.utils import quote, unquote
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.http import Http404, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import path, reverse

from audit_app.admin.columns import audit_button
from audit_app.admin.records import AuditedAdmin

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from django.db.models import Model, QuerySet
    from django.http import HttpRequest, HttpResponse
    from django.http.response import HttpResponseBase
    from django.urls import URLPattern

    from audit_app.record import AuditAction

MAX_ROWS: Final = 100
"""The most rows that one confirmed action of a list covers."""
SEEN_CHARS: Final = 80
_NOTHING_SEEN: Final = "?"


class OperationRefused(Exception):
    """The operation was refused; the message gives the operator the reason."""


class ReasonForm(forms.Form):
    """The reason, for the audit log; `seen` is the row's state as the operator saw it."""

    reason = forms.CharField(max_length=500, help_text="Recorded in the audit log.")
    seen = forms.CharField(required=False, max_length=SEEN_CHARS, widget=forms.HiddenInput)


@dataclass(frozen=True, kw_only=True)
class Operation:
    """An operation that operators may run on a row of one model.

    `run` takes the row, the cleaned form and the request; it returns what happened, or "" if there
    was nothing left to do, and raises OperationRefused. The audit records it as `act`; None means
    that the service called by `run` records it. `facts` returns what to know beforehand,
    `is_available` whether it makes sense for a row, `seen` the state that the form carries.
    `in_list` also offers it for several rows of a list. The operation and its record are one
    transaction, unless `is_atomic` is false: such an operation waits for something, and must not
    hold locks while it does.
    """

    name: str
    label: str
    right: str
    act: AuditAction | None
    run: Callable[[Any, dict[str, Any], HttpRequest], str]
    facts: Callable[[Any], str] = str
    is_available: Callable[[Any], bool] = bool
    seen: Callable[[Any], str] = lambda _: ""
    form: type[ReasonForm] = ReasonForm
    in_list: bool = False
    is_atomic: bool = True


class OperationsAdmin(AuditedAdmin):
    """An admin whose rows have operations: buttons on their page, and actions in lists."""

    operations: ClassVar[Sequence[Operation]] = ()
    change_form_template = "admin/audit_app/change_form.html"

    def operations_for(self, request: HttpRequest) -> list[Operation]:
        """Return the operations that a person may run."""
        return [
            operation for operation in self.operations if request.user.has_perm(operation.right)
        ]

    def may_operate(self, request: HttpRequest, operation: Operation, row: Any) -> bool:
        """Return whether a person may run an operation on a row."""
        del row
        return request.user.has_perm(operation.right)

    def row_links(self, request: HttpRequest, row: Any) -> list[dict[str, str]]:
        """Return the buttons of a row next to its operations: {url, label}."""
        del request, row
        return []

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        """Show a row, with links to its operations."""
        row = self.get_object(request, unquote(object_id))
        links = []
        if row is not None:
            links = [
                *self.row_links(request, row),
                *audit_button(request, self.opts.label_lower, row.pk),
                *(
                    {"url": self._address(row, operation), "label": operation.label}
                    for operation in self.operations
                    if self.may_operate(request, operation, row) and operation.is_available(row)
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
        """Offer the operations of lists to those who may run them."""
        actions = super().get_actions(request)
        for operation in self.operations_for(request):
            if operation.in_list and self.opts.label and "_popup" not in request.GET:
                actions[operation.name] = (
                    _list_action(operation),
                    operation.name,
                    f"{operation.label}: the selected rows",
                )
        return actions

    def operate_view(self, request: HttpRequest, object_id: str, name: str) -> HttpResponseBase:
        """Ask for a reason and run the operation; a refusal is shown in the form."""
        operation = self._operation(request, name)
        row = self.get_object(request, unquote(object_id))
        if row is None or not self.has_view_permission(request, row):
            raise Http404
        if not self.may_operate(request, operation, row):
            raise PermissionDenied
        form = operation.form(request.POST or None, initial={"seen": operation.seen(row)})
        if request.method == "POST" and form.is_valid():
            try:
                done = self._run(request, operation, row, form.cleaned_data)
            except OperationRefused as error:
                form.add_error(None, str(error))
            else:
                return self.finish_operation(request, operation, row, form.cleaned_data, done)
        context = {
            **self.admin_site.each_context(request),
            "opts": self.opts,
            "original": row,
            "title": operation.label,
            "facts": operation.facts(row),
            "form": form,
        }
        return TemplateResponse(request, "admin/audit_app/operate.html", context)

    def finish_operation(
        self,
        request: HttpRequest,
        operation: Operation,
        row: Model,
        data: dict[str, Any],
        done: str,
    ) -> HttpResponseBase:
        """Report the outcome, and redirect to the row.

        `data` is the cleaned form, with anything `run` added.
        """
        del data
        if done:
            self.message_user(request, f"{operation.label}: {done}.", messages.SUCCESS)
        else:
            self.message_user(
                request, f"{operation.label}: there was nothing left to do.", messages.INFO
            )
        return HttpResponseRedirect(self._page_of(row))

    def _run(
        self, request: HttpRequest, operation: Operation, row: Model, data: dict[str, Any]
    ) -> str:
        """Run an operation on a row and record it; return what happened, or ""."""
        with transaction.atomic() if operation.is_atomic else nullcontext():
            done = operation.run(row, data, request)
            self._record(request, operation, row, data["reason"], done)
        return done

    def _record(
        self, request: HttpRequest, operation: Operation, row: Model, reason: str, done: str
    ) -> None:
        """Record what was done to a row, if anything was."""
        if done and operation.act is not None:
            self.log_act(request, row, operation.act, f"{operation.label}: {done}", reason)
        elif done:
            # Only to Django's own history, as the audit has it already.
            super(AuditedAdmin, self).log_change(
                request, row, f"{operation.label}: {done} ({reason})"
            )

    def operate_on_list(
        self, request: HttpRequest, operation: Operation, rows: QuerySet[Any]
    ) -> HttpResponse | None:
        """Ask once for a reason, then run the operation on each of several rows."""
        chosen = list(rows[: MAX_ROWS + 1])
        has_more = len(chosen) > MAX_ROWS
        chosen = chosen[:MAX_ROWS]
        fit = [
            row
            for row in chosen
            if operation.is_available(row) and self.may_operate(request, operation, row)
        ]
        is_sent = "reason" in request.POST
        form = ReasonForm(request.POST if is_sent else None)
        if not (is_sent and form.is_valid()):
            context = {
                **self.admin_site.each_context(request),
                "opts": self.opts,
                "title": operation.label,
                "facts": [operation.facts(row) for row in fit],
                "passed": len(chosen) - len(fit),
                "form": form,
                "chosen": [(row.pk, operation.seen(row)) for row in chosen],
                "covered": MAX_ROWS if has_more else None,
                "checkbox": ACTION_CHECKBOX_NAME,
                "action": operation.name,
            }
            return TemplateResponse(request, "admin/audit_app/operate_on_list.html", context)
        count = 0
        for row in fit:
            try:
                # Of a form without it, nothing is known that the operator saw.
                seen = request.POST.get(f"seen-{row.pk}", _NOTHING_SEEN)[:SEEN_CHARS]
                data = {**form.cleaned_data, "seen": seen}
                count += bool(self._run(request, operation, row, data))
            except OperationRefused as error:
                self.message_user(request, f"{row}: {error}", messages.ERROR)
        self.message_user(request, f"{operation.label}: {count} of {len(chosen)} rows.")
        return None

    def _operation(self, request: HttpRequest, name: str) -> Operation:
        operation = next((entry for entry in self.operations if entry.name == name), None)
        if operation is None:
            raise Http404
        if not request.user.has_perm(operation.right):
            raise PermissionDenied
        return operation

    def _address(self, row: Model, operation: Operation) -> str:
        name = f"admin:{self.opts.app_label}_{self.opts.model_name}_operate"
        return reverse(name, args=[quote(row.pk), operation.name])

    def _page_of(self, row: Model) -> str:
        name = f"admin:{self.opts.app_label}_{self.opts.model_name}_change"
        return reverse(name, args=[quote(row.pk)])


def _list_action(operation: Operation) -> Any:
    def action(
        admin: OperationsAdmin, request: HttpRequest, rows: QuerySet[Any]
    ) -> HttpResponse | None:
        return admin.operate_on_list(request, operation, rows)

    return action
