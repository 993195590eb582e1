"""The base of the ledger's admin pages: read-only rows, and operations through services.

Rows cannot be added, changed or deleted. An operation goes through the services with a reason,
requires a separate permission, and is recorded; its form carries its idempotency key, so that a
double click is one movement.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from django import forms
from django.contrib import admin, messages
from django.contrib.admin.utils import quote, unquote
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.http import Http404, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import path, reverse

from agents_app.selectors import known_names
from audit_app.admin.column_search import ColumnSearch
from audit_app.admin.columns import audit_button, row_link
from audit_app.admin.records import RecordAdmin
from audit_app.record import AuditAction
from payments_app import selectors, services
from payments_app.models import AccountKind, Idempotency
from payments_app.money import AssetMismatch, InvalidAmount, Money

if TYPE_CHECKING:
    from django.http import HttpRequest
    from django.http.response import HttpResponseBase
    from django.urls import URLPattern
    from django.utils.safestring import SafeString

    from payments_app.models import Account

KINDS: Final = (
    "adjust", "answer", "charge", "onward_budget", "pool", "refund", "token", "token_return",
    "top_up", "transfer",
)  # fmt: skip
"""The kinds of transfers that the server makes."""
SCOPE: Final = "admin"
"""The scope of keys in forms: a browser sends them, and could send one of the server's."""


def amount_of(units: int, asset: str) -> str:
    """Return an amount with its currency; a damaged amount is shown as stored."""
    try:
        return f"{Money(units, asset)} {asset}"
    except InvalidAmount:
        return f"{units} (not an amount)"


@admin.display(description="agent")
def agent_link(row: Any) -> SafeString | str:
    """Return a link to a row's agent, labelled with the agent's name."""
    return row_link("agents_app.agent", row.agent_id, known_names().get(row.agent_id))


def account_label(account: Account) -> str:
    """Return a name for an account: its owner's, its agent's, or its code."""
    if account.owner_id is not None and account.owner is not None:
        kind = "" if account.kind == AccountKind.USER else f" ({account.get_kind_display()})"
        return f"{account.owner.get_username()}{kind}"
    if account.agent_id:
        return known_names().get(account.agent_id) or account.code
    return account.code


@dataclass(frozen=True, slots=True)
class Done:
    """The outcome of an operation; `replayed` if it was done before and now changed nothing."""

    text: str
    replayed: bool = False


class OrderForm(forms.Form):
    """The fields of every order: the reason, and the key that makes it idempotent."""

    key = forms.CharField(widget=forms.HiddenInput, max_length=64)
    confirmed = forms.CharField(widget=forms.HiddenInput, max_length=300, required=False)
    reason = forms.CharField(max_length=500)


class AmountForm(OrderForm):
    """An order with an amount, as a decimal string."""

    amount = forms.CharField(max_length=30)
    field_order: tuple[str, ...] = ("amount", "reason")


class RefundForm(AmountForm):
    """A refund; without an amount everything that is left is returned."""

    amount = forms.CharField(
        max_length=30,
        required=False,
        help_text="Empty: the whole remaining amount of the transfer.",
    )


class LedgerAdmin(ColumnSearch, RecordAdmin):
    """A list of rows, newest first, below the state of the last audit.

    A subclass that sets `operation` (name, label) offers it to those with that permission on a
    separate page; `operate` performs it, and the audit records it as `audit_action`.
    """

    change_list_template = "admin/payments_app/change_list.html"
    change_form_template = "admin/payments_app/change_form.html"
    operation: tuple[str, str] | None = None
    audit_action: AuditAction = AuditAction.ROW_CHANGED
    form_class: type[OrderForm] = OrderForm

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Show the list, with a note above it whether the ledger adds up."""
        response: HttpResponse = super().changelist_view(
            request, {"health": selectors.ledger_health(), **(extra_context or {})}
        )
        return response

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        """Show a row, with links to its operations."""
        links = self.links(request, object_id)
        return super().change_view(
            request, object_id, form_url, {"links": links, **(extra_context or {})}
        )

    def is_available(self, row: Any) -> bool:
        """Return whether the operation makes sense for a row."""
        return row is not None

    def links(self, request: HttpRequest, object_id: str) -> list[dict[str, str]]:
        """Return the buttons of a row: {url, label}."""
        links = [*self.ways_back(request, object_id), *self.audit_links(request, object_id)]
        if self.operation is None or not self.may_operate(request):
            return links
        if not self.is_available(self.get_object(request, unquote(object_id))):
            return links
        url = reverse(f"admin:payments_app_{self.opts.model_name}_operate", args=[object_id])
        return [*links, {"url": url, "label": self.operation[1]}]

    def ways_back(self, request: HttpRequest, object_id: str) -> list[dict[str, str]]:
        """Return a link from an answer's row to the answer's timeline: {url, label}."""
        row = self.get_object(request, unquote(object_id))
        response_id = getattr(row, "response_id", "")
        if not response_id or not request.user.has_perm("sessions_app.view_response"):
            return []
        # The page belongs to sessions_app, which builds on this app.
        url = reverse("admin:sessions_app_response_timeline", args=[quote(response_id)])
        return [{"url": url, "label": "Timeline of its answer"}]

    def audit_links(self, request: HttpRequest, object_id: str) -> list[dict[str, str]]:
        """Return the button to the audit records of a row: {url, label}."""
        return audit_button(request, self.opts.label_lower, unquote(object_id))

    def may_operate(self, request: HttpRequest) -> bool:
        """Return whether a person may perform the operation of this page."""
        return self.operation is not None and request.user.has_perm(
            f"payments_app.{self.operation[0]}"
        )

    def get_urls(self) -> list[URLPattern]:
        """Add the page of the operation."""
        if self.operation is None:
            return super().get_urls()
        page = path(
            "<path:object_id>/operate/",
            self.admin_site.admin_view(self.operate_view),
            name=f"payments_app_{self.opts.model_name}_operate",
        )
        return [page, *super().get_urls()]

    def operate_view(self, request: HttpRequest, object_id: str) -> HttpResponseBase:
        """Ask for a reason and perform the operation; a refusal is shown in the form."""
        if self.operation is None or not self.may_operate(request):
            raise PermissionDenied
        row = self.get_object(request, unquote(object_id))
        if row is None:
            raise Http404
        label = self.operation[1]
        form = self.form_class(request.POST or None, initial={"key": f"admin:{uuid.uuid4().hex}"})
        preview = ""
        if request.method == "POST" and form.is_valid():
            try:
                preview = self._unconfirmed(row, form, request.user.pk or 0)
                done = "" if preview else self._done_and_recorded(request, row, form.cleaned_data)
            except (services.LedgerError, InvalidAmount, AssetMismatch, ValueError) as error:
                form.add_error(None, str(error))
            else:
                if preview:
                    return self._page_of_operation(request, row, form, preview)
                self.message_user(request, f"{label}: {done}.", messages.SUCCESS)
                name = f"admin:payments_app_{self.opts.model_name}_change"
                return HttpResponseRedirect(reverse(name, args=[quote(row.pk)]))
        return self._page_of_operation(request, row, form)

    def _page_of_operation(
        self, request: HttpRequest, row: Any, form: OrderForm, preview: str = ""
    ) -> HttpResponse:
        context = {
            **self.admin_site.each_context(request),
            "opts": self.opts,
            "original": row,
            "title": self.operation[1] if self.operation else "",
            "facts": self.facts(row),
            "preview": preview,
            "form": form,
        }
        return TemplateResponse(request, "admin/audit_app/operate.html", context)

    def _unconfirmed(self, row: Any, form: OrderForm, by: int) -> str:
        """Return the result to show before the operation, or "" once the person confirmed it."""
        options = form.cleaned_data
        if Idempotency.objects.filter(scope=SCOPE, key=options["key"]).exists():
            return ""  # it is sent again
        preview = self.preview(row, options, by)
        if options["confirmed"] == preview:
            return ""
        # Not a dict display: that of a QueryDict has lists of values.
        form.data = {**{name: form.data[name] for name in form.data}, "confirmed": preview}
        return preview

    def preview(self, row: Any, options: dict[str, Any], by: int) -> str:
        """Describe the effect of the operation, for the person to confirm; "" to skip it."""
        del row, options, by
        return ""

    @transaction.atomic
    def _done_and_recorded(self, request: HttpRequest, row: Any, data: dict[str, Any]) -> str:
        """Perform the operation and record it, both or neither.

        A form that is sent again gets the first answer, and is recorded once. The service says
        whether it is: the form's key alone says nothing, since a browser may send any.
        """
        done = self.operate(row, data, int(request.user.pk or 0))
        if not done.replayed:
            label = self.operation[1] if self.operation else ""
            text = f"{label}: {done.text}"
            self.log_act(request, row, self.audit_action, text, data["reason"])
        return done.text

    def facts(self, row: Any) -> str:
        """Return the facts to know before deciding."""
        return str(row)

    def operate(self, row: Any, data: dict[str, Any], by: int) -> Done:
        """Perform the operation; return what happened, for the record."""
        raise NotImplementedError
