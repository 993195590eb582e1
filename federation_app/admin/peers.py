"""Peers in the admin: added by their manifest, hub or keys, refreshed and revoked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from django.contrib import admin
from django.template.response import TemplateResponse

from audit_app.admin.columns import linked, moment
from audit_app.admin.operations import OperationsAdmin
from audit_app.admin.records import RecordAdmin, RecordInline
from federation_app.admin.capability_tokens import DEMAND, ISSUE, STOP_DEMANDING
from federation_app.admin.new_peer import NewPeerForm, fetch_documents
from federation_app.admin.peer_operations import (
    ADDRESS,
    LIMIT,
    LIMITS,
    REFRESH,
    RELAY,
    RESUME,
    REVOKE,
    REVOKE_KEY,
    RIGHT,
    STOP_RELAYING,
    SUSPEND,
    TRUST_CHILDREN,
)
from federation_app.models import EnvelopeStream, Peer, PeerKey, ReceivedEnvelope

if TYPE_CHECKING:
    from django.http import HttpRequest
    from django.http.response import HttpResponseBase

    from audit_app.admin.operations import Operation


class PeerKeyInline(RecordInline):
    """The keys of a peer."""

    model = PeerKey
    fields = ("kid", "algorithm", "created_at", "retired_at", "revoked_at")
    ordering: ClassVar[Any] = ("-created_at", "-id")


@admin.register(Peer)
class PeerAdmin(RecordAdmin, OperationsAdmin):
    """Servers that sign envelopes, and the people they act for."""

    operations = (
        REFRESH, TRUST_CHILDREN, RELAY, STOP_RELAYING, LIMIT, ADDRESS, ISSUE, DEMAND,
        STOP_DEMANDING, SUSPEND, RESUME, REVOKE,
    )  # fmt: skip
    list_display = (
        "did", "name", "trust", linked("user"), "problem", moment("suspended_at"),
        moment("revoked_at"),
    )  # fmt: skip
    list_select_related = ("user", "anchor")
    ordering = ("-created_at", "-id")
    search_fields = ("did__exact",)
    search_help_text = "The DID of a peer."
    fields = (
        "did", "name", "trust", "user", "manifest", "manifest_sha256", "created_at", "checked_at",
        "problem", "failing_since", "suspended_at", "revoked_at", *LIMITS, "served_bytes",
        "served_since", "address",
        "documents_address", "deliver_at", "failures", "anchor", "unlisted_at", "hub",
        "documents_read_at", "hub_expires_at", "is_relayed", "asks_need_token",
    )  # fmt: skip
    inlines = (PeerKeyInline,)

    def has_add_permission(self, request: HttpRequest, *_args: Any) -> bool:
        """Allow those to add peers who may manage their trust."""
        return request.user.has_perm(RIGHT)

    def add_view(self, request: Any, form_url: str = "", extra_context: Any = None) -> Any:
        """Fetch the documents of a new peer before its form is processed."""
        if request.method == "POST" and self.has_add_permission(request):
            request.peer_documents = fetch_documents(request.POST)
        return super().add_view(request, form_url, extra_context)

    def get_form(self, request: Any, obj: Any = None, change: Any = False, **kwargs: Any) -> Any:  # noqa: FBT002 Django's signature
        """Return the form for a new peer; existing peers are read-only."""
        if obj is None:
            documents = getattr(request, "peer_documents", None)
            return type("NewPeerForm", (NewPeerForm,), {"documents": documents})
        return super().get_form(request, obj, change, **kwargs)

    def get_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        """Return the fields of the form for a new peer, or those of an existing one."""
        if obj is None:
            return ("manifest_url", "address", "trust", "did", "jwks", "name", "user", "seen")
        return super().get_fields(request, obj)

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        """Make all fields of an existing peer read-only."""
        return () if obj is None else super().get_readonly_fields(request, obj)

    def get_inlines(self, request: HttpRequest, obj: Any) -> Any:
        """Show the keys of an existing peer."""
        return () if obj is None else super().get_inlines(request, obj)

    def save_model(self, request: Any, obj: Any, form: Any, change: Any) -> None:
        """Do nothing, since the form has added the row."""

    def finish_operation(
        self, request: HttpRequest, operation: Operation, row: Any, data: dict[str, Any], done: str
    ) -> HttpResponseBase:
        """Display a new capability token, once: a message would store it in a cookie."""
        if "secret" not in data:
            return super().finish_operation(request, operation, row, data, done)
        context = {
            **self.admin_site.each_context(request),
            "opts": self.opts,
            "original": row,
            "secret": data["secret"],
            "title": "The new capability token",
        }
        return TemplateResponse(
            request, "admin/federation_app/capabilitytoken/issued.html", context
        )


@admin.register(PeerKey)
class PeerKeyAdmin(RecordAdmin, OperationsAdmin):
    """Keys of peers, each of which can be revoked."""

    operations = (REVOKE_KEY,)
    list_display = (
        "kid", linked("peer"), "algorithm", moment("created_at"), moment("retired_at"),
        moment("revoked_at"),
    )  # fmt: skip
    list_select_related = ("peer",)
    fields = ("peer", "kid", "algorithm", "jwk", "created_at", "retired_at", "revoked_at")


@admin.register(EnvelopeStream)
class EnvelopeStreamAdmin(RecordAdmin):
    """Requests of peers, and the responses that answer them."""

    list_display = (
        "stream_id", linked("peer"), "receiver", "response_id", "acknowledged",
        moment("created_at"),
    )  # fmt: skip
    list_select_related = ("peer",)
    ordering = ("-created_at", "-id")
    fields = (
        "peer", "stream_id", "receiver", "relayed_to", "window", "acknowledged", "session_id",
        "response_id", "created_at",
    )  # fmt: skip


@admin.register(ReceivedEnvelope)
class ReceivedEnvelopeAdmin(RecordAdmin):
    """The envelopes accepted in the last UAMP_ENVELOPE_HOURS."""

    list_display = ("envelope_id", linked("peer"), "intent", "sha256", moment("created_at"))
    list_select_related = ("peer",)
    ordering = ("-created_at", "-id")
    fields = (
        "peer",
        "envelope_id",
        "sha256",
        "intent",
        "size",
        "signed_at",
        "created_at",
        "stream",
        "relayed_to",
        "relayed_at",
    )
