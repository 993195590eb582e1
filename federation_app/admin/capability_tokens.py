"""Capability tokens in the admin: issued to a peer, listed and revoked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Final

from django import forms
from django.contrib import admin

from audit_app.admin.columns import linked, moment
from audit_app.admin.operations import Operation, OperationRefused, OperationsAdmin, ReasonForm
from audit_app.admin.records import RecordAdmin
from audit_app.record import AuditAction
from federation_app.admin.peer_operations import RIGHT
from federation_app.envelope.errors import EnvelopeError
from federation_app.envelope.members.reading import Intent
from federation_app.exchange.admission import GUEST_INTENTS, INTENTS
from federation_app.models import CapabilityToken, Peer
from federation_app.terms import capabilities

if TYPE_CHECKING:
    from django.http import HttpRequest


class IssueForm(ReasonForm):
    """The scope and the lifetime of a new token."""

    intents = forms.MultipleChoiceField(
        choices=[(intent.value, intent.value) for intent in (*INTENTS, *GUEST_INTENTS)],
        initial=[Intent.ASK.value],
        widget=forms.CheckboxSelectMultiple(attrs={"class": "names"}),
        help_text="The intents of the envelopes that it covers.",
    )
    agents = forms.CharField(
        required=False,
        max_length=2000,
        help_text="The names of agents, separated by spaces. Leave empty for all agents here.",
    )
    hours = forms.IntegerField(
        min_value=1,
        max_value=capabilities.MAX_HOURS,
        initial=capabilities.DEFAULT_HOURS,
        help_text="How long it is valid.",
    )


def _newest(peer: Peer) -> str:
    """Return the id of the last token of a peer; "" if it has none."""
    rows = CapabilityToken.objects.filter(peer=peer).order_by("-created_at", "-id")
    return rows.values_list("pk", flat=True).first() or ""


def _may_have_tokens(peer: Peer) -> bool:
    return peer.revoked_at is None


def _issue(peer: Peer, values: dict[str, Any], request: HttpRequest) -> str:
    del request
    # Locked, so that a form that is sent twice at once finds the token of the first.
    peer = Peer.objects.select_for_update(no_key=True).get(pk=peer.pk)
    if values["seen"] != _newest(peer):
        return ""
    if not _may_have_tokens(peer):
        raise OperationRefused("The peer is revoked.")
    intents = {Intent(intent) for intent in values["intents"]}
    try:
        row, token = capabilities.issue(
            peer, intents=intents, agents=values["agents"].split(), hours=values["hours"]
        )
    except EnvelopeError as error:
        raise OperationRefused(error.message) from None
    values["secret"] = token
    return row.summary


def _revoke(row: CapabilityToken, values: dict[str, Any], request: HttpRequest) -> str:
    del values, request
    return "envelopes with it are rejected" if capabilities.revoke(row) else ""


def _demand(peer: Peer, values: dict[str, Any], request: HttpRequest) -> str:
    del values, request
    rows = Peer.objects.filter(pk=peer.pk, asks_need_token=False)
    return "its questions need a token" if rows.update(asks_need_token=True) else ""


def _stop_demanding(peer: Peer, values: dict[str, Any], request: HttpRequest) -> str:
    del values, request
    rows = Peer.objects.filter(pk=peer.pk, asks_need_token=True)
    return "its questions need no token" if rows.update(asks_need_token=False) else ""


ISSUE: Final = Operation(
    name="issue",
    label="Issue capability token",
    right=RIGHT,
    act=AuditAction.KEY_MADE,
    run=_issue,
    facts=lambda peer: (
        f"A token for envelopes that {peer.did} signs. It is shown once. It gives no rights: it"
        " narrows the envelopes that carry it."
    ),
    is_available=_may_have_tokens,
    seen=_newest,
    form=IssueForm,
)
DEMAND: Final = Operation(
    name="demand",
    label="Require capability tokens",
    right=RIGHT,
    act=AuditAction.ROW_CHANGED,
    run=_demand,
    facts=lambda peer: f"Questions from {peer.did} will be rejected without a capability token.",
    is_available=lambda peer: peer.revoked_at is None and not peer.asks_need_token,
)
STOP_DEMANDING: Final = Operation(
    name="stop_demanding",
    label="Stop requiring tokens",
    right=RIGHT,
    act=AuditAction.ROW_CHANGED,
    run=_stop_demanding,
    facts=lambda peer: f"Questions from {peer.did} will be accepted without a capability token.",
    is_available=lambda peer: peer.asks_need_token,
)
REVOKE_TOKEN: Final = Operation(
    name="revoke",
    label="Revoke token",
    right=RIGHT,
    act=AuditAction.KEY_REVOKED,
    run=_revoke,
    facts=lambda row: f"Envelopes with the token {row.pk} will be refused.",
    is_available=lambda row: row.revoked_at is None,
    in_list=True,
)


@admin.register(CapabilityToken)
class CapabilityTokenAdmin(RecordAdmin, OperationsAdmin):
    """The capability tokens that were issued; the tokens themselves are not stored."""

    operations = (REVOKE_TOKEN,)
    list_display = (
        "id", linked("peer"), "intents", "audience", moment("created_at"), moment("expires_at"),
        moment("revoked_at"),
    )  # fmt: skip
    list_select_related = ("peer",)
    ordering: ClassVar[Any] = ("-created_at", "-id")
    search_fields = ("id__exact", "peer__did__exact")
    search_help_text = "The id of a token, or the DID of its peer."
    fields = ("id", "peer", "intents", "audience", "created_at", "expires_at", "revoked_at")
