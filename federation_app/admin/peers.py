"""Peers in the admin: added by their manifest or their keys, refreshed and revoked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Final, NoReturn

from django import forms
from django.contrib import admin

from audit_app.admin.columns import linked, moment
from audit_app.admin.operations import (
    Operation,
    OperationRefused,
    OperationsAdmin,
    ReasonForm,
)
from audit_app.admin.records import RecordAdmin, RecordInline
from audit_app.record import AuditAction
from federation_app.envelope.errors import EnvelopeError, malformed
from federation_app.envelope.limits import ENVELOPE_BYTES
from federation_app.models import (
    EnvelopeStream,
    Peer,
    PeerKey,
    PeerTrust,
    ReceivedEnvelope,
)
from federation_app.peers import registry
from federation_app.peers.documents import documents_at

if TYPE_CHECKING:
    from django.http import HttpRequest

    from federation_app.peers.documents import PeerDocuments

    # Only the stubs give Django's classes type parameters.
    _PeerForm = forms.ModelForm[Peer]
else:
    _PeerForm = forms.ModelForm

LIMITS: Final = ("max_body_kb", "rate_lph", "kb_per_hour", "max_streams")
COUNT_MOST: Final = 10**9
RIGHT: Final = "federation_app.change_peer_trust"


class NewPeerForm(_PeerForm):
    """A new peer: the address of its manifest, or its name with its keys.

    It is added once the operator has seen what its documents say: the first time, and whenever they
    have changed since, the form shows that and `seen` remembers which documents those were.

    `found` holds the documents at that address, or the error in them. They are fetched before the
    form's transaction, which would block all other writers on SQLite.
    """

    found: ClassVar[PeerDocuments | EnvelopeError | None] = None
    manifest_url = forms.CharField(
        required=False,
        max_length=600,
        help_text="https://HOST/.well-known/agent-manifest.json: its name and keys are read there.",
    )
    did = forms.CharField(
        required=False, max_length=512, help_text="did:web:HOST; with the trust by operator alone."
    )
    jwks = forms.JSONField(
        required=False, help_text='Its public keys, {"keys": […]}; with the trust by operator.'
    )

    seen = forms.CharField(required=False, max_length=64, widget=forms.HiddenInput)

    class Meta:
        """The fields that an operator decides."""

        model = Peer
        fields = ("trust", "name", "user")

    def clean(self) -> dict[str, Any]:
        """Add the peer from its documents or its keys."""
        values: dict[str, Any] = super().clean() or self.cleaned_data
        if self.errors:
            return values
        chosen = {"user": values["user"], "name": values["name"]}
        try:
            if values["trust"] == PeerTrust.OPERATOR:
                peer = registry.enter_peer(values["did"], values["jwks"], **chosen)
            elif isinstance(self.found, EnvelopeError) or self.found is None:
                raise self.found or malformed("Write the address of the manifest.")
            elif values["seen"] != self.found.sha256:
                self._show(self.found)
            else:
                trust = PeerTrust(values["trust"])
                peer = registry.add_peer(self.found, trust=trust, **chosen)
        except EnvelopeError as error:
            raise forms.ValidationError(f"{error.code.value}: {error.message}") from None
        self.instance = peer
        return values

    def _show(self, found: PeerDocuments) -> NoReturn:
        """Show what an address leads to, and ask for trust in it."""
        self.data = {**self.data.dict(), "seen": found.sha256}  # type: ignore[attr-defined]  # a QueryDict
        manifest = found.manifest
        raise forms.ValidationError(
            [
                f"Found {found.identity.did}: {manifest.description[:500] or 'no description'}",
                f"It speaks {manifest.agent}, with the intents {', '.join(manifest.intents)}.",
                *(f"It signs with {key.algorithm}, key {key.kid}." for key in found.keys),
                "Save again to trust it.",
            ]
        )

    def _post_clean(self) -> None:
        """Leave the row as it was added, since the form has no other values for it."""


def _documents(values: Any) -> PeerDocuments | EnvelopeError | None:
    """Return the documents of a new peer, or the error in them; None if none are needed."""
    if values.get("trust") == PeerTrust.OPERATOR or not values.get("manifest_url"):
        return None
    try:
        return documents_at(values["manifest_url"])
    except EnvelopeError as error:
        return error


def _refresh(peer: Peer, wanted: dict[str, Any], request: HttpRequest) -> str:
    del wanted, request
    try:
        return f"it has {registry.refresh(peer)} keys"
    except EnvelopeError as error:
        raise OperationRefused(f"{error.code.value}: {error.message}") from None


class LimitsForm(ReasonForm):
    """The limits of one peer; an empty field leaves it those of all peers."""

    max_body_kb = forms.IntegerField(
        required=False, min_value=1, max_value=ENVELOPE_BYTES // 1024, help_text="KiB of a body."
    )
    rate_lph = forms.IntegerField(
        required=False, min_value=1, max_value=COUNT_MOST, help_text="Envelopes an hour."
    )
    kb_per_hour = forms.IntegerField(
        required=False, min_value=1, max_value=COUNT_MOST, help_text="KiB of envelopes an hour."
    )
    max_streams = forms.IntegerField(
        required=False, min_value=1, max_value=COUNT_MOST, help_text="Streams read at a time."
    )


def _limit(peer: Peer, wanted: dict[str, Any], request: HttpRequest) -> str:
    del request
    limits = {name: wanted[name] for name in LIMITS}
    if limits == {name: getattr(peer, name) for name in LIMITS}:
        return ""
    Peer.objects.filter(pk=peer.pk).update(**limits)
    shown = ", ".join(f"{name} {value}" for name, value in limits.items() if value is not None)
    return shown or "it has the limits of all peers"


class PeerAddressForm(ReasonForm):
    """Where envelopes for a peer are posted."""

    address = forms.URLField(
        required=False,
        max_length=300,
        assume_scheme="https",
        help_text="Empty: https:// and the host of its name. Private addresses have to be in"
        " UAMP_REMOTE_ALLOW_HOSTS.",
    )


def _address(peer: Peer, wanted: dict[str, Any], request: HttpRequest) -> str:
    del request
    if wanted["address"] == peer.address:
        return ""
    Peer.objects.filter(pk=peer.pk).update(address=wanted["address"])
    return wanted["address"] or "it is at the host of its name"


def _suspend(peer: Peer, wanted: dict[str, Any], request: HttpRequest) -> str:
    del wanted, request
    return "nothing that it signs is accepted until it is resumed" if registry.suspend(peer) else ""


def _resume(peer: Peer, wanted: dict[str, Any], request: HttpRequest) -> str:
    del wanted, request
    return "what it signs is accepted again" if registry.resume(peer) else ""


def _revoke(peer: Peer, wanted: dict[str, Any], request: HttpRequest) -> str:
    del wanted, request
    return "nothing that it signs is accepted" if registry.revoke(peer) else ""


def _revoke_key(key: PeerKey, wanted: dict[str, Any], request: HttpRequest) -> str:
    del wanted, request
    return "nothing that it signs is accepted" if registry.revoke_key(key) else ""


REFRESH: Final = Operation(
    name="refresh",
    label="Read manifest and keys again",
    right=RIGHT,
    act=AuditAction.ROW_CHANGED,
    run=_refresh,
    facts=lambda peer: f"The keys of {peer.did} are those of its DID document from now on.",
    offered=lambda peer: peer.revoked_at is None and peer.trust != PeerTrust.OPERATOR,
)
SUSPEND: Final = Operation(
    name="suspend",
    label="Suspend peer",
    right=RIGHT,
    act=AuditAction.ROW_CHANGED,
    run=_suspend,
    facts=lambda peer: f"Nothing that {peer.did} signs is accepted until you resume it.",
    offered=lambda peer: peer.revoked_at is None and peer.suspended_at is None,
)
RESUME: Final = Operation(
    name="resume",
    label="Resume peer",
    right=RIGHT,
    act=AuditAction.ROW_CHANGED,
    run=_resume,
    facts=lambda peer: f"What {peer.did} signs is accepted again.",
    offered=lambda peer: peer.revoked_at is None and peer.suspended_at is not None,
)
LIMIT: Final = Operation(
    name="limit",
    label="Limit peer",
    right=RIGHT,
    act=AuditAction.ROW_CHANGED,
    run=_limit,
    facts=lambda peer: f"The limits of {peer.did}, below those of all peers.",
    offered=lambda peer: peer.revoked_at is None,
    form=LimitsForm,
)
ADDRESS: Final = Operation(
    name="address",
    label="Set address",
    right=RIGHT,
    act=AuditAction.ROW_CHANGED,
    run=_address,
    facts=lambda peer: f"Where envelopes of shared chats for {peer.did} are posted.",
    offered=lambda peer: peer.revoked_at is None,
    form=PeerAddressForm,
)
REVOKE: Final = Operation(
    name="revoke",
    label="Revoke peer",
    right=RIGHT,
    act=AuditAction.KEY_REVOKED,
    run=_revoke,
    facts=lambda peer: f"Nothing that {peer.did} signs is accepted, and its streams end.",
    offered=lambda peer: peer.revoked_at is None,
)
REVOKE_KEY: Final = Operation(
    name="revoke",
    label="Revoke key",
    right=RIGHT,
    act=AuditAction.KEY_REVOKED,
    run=_revoke_key,
    facts=lambda key: f"Nothing that {key.kid} signs is accepted, also if it is published again.",
    offered=lambda key: key.revoked_at is None,
)


class PeerKeyInline(RecordInline):
    """The keys of a peer."""

    model = PeerKey
    fields = ("kid", "algorithm", "created_at", "retired_at", "revoked_at")
    ordering: ClassVar[Any] = ("-created_at", "-id")


@admin.register(Peer)
class PeerAdmin(RecordAdmin, OperationsAdmin):
    """Servers that sign envelopes, and the people they act for."""

    operations = (REFRESH, LIMIT, ADDRESS, SUSPEND, RESUME, REVOKE)
    list_display = (
        "did", "name", "trust", linked("user"), "problem", moment("created_at"),
        moment("suspended_at"), moment("revoked_at"),
    )  # fmt: skip
    list_select_related = ("user",)
    ordering = ("-created_at", "-id")
    search_fields = ("did__exact",)
    search_help_text = "The DID of a peer."
    fields = (
        "did", "name", "trust", "user", "manifest", "manifest_sha256", "created_at", "checked_at",
        "problem", "failing_since", "suspended_at", "revoked_at", *LIMITS, "address", "deliver_at",
        "failures",
    )  # fmt: skip
    inlines = (PeerKeyInline,)

    def has_add_permission(self, request: HttpRequest, *_args: Any) -> bool:
        """Allow those to add peers who may manage their trust."""
        return request.user.has_perm(RIGHT)

    def add_view(self, request: Any, form_url: str = "", extra_context: Any = None) -> Any:
        """Fetch the documents of a new peer before its form is processed."""
        if request.method == "POST" and self.has_add_permission(request):
            request.peer_documents = _documents(request.POST)
        return super().add_view(request, form_url, extra_context)

    def get_form(self, request: Any, obj: Any = None, change: Any = False, **kwargs: Any) -> Any:  # noqa: FBT002 Django's signature
        """Return the form for a new peer; existing peers are read-only."""
        if obj is None:
            found = getattr(request, "peer_documents", None)
            return type("NewPeerForm", (NewPeerForm,), {"found": found})
        return super().get_form(request, obj, change, **kwargs)

    def get_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        """Return the fields of the form for a new peer, or those of an existing one."""
        if obj is None:
            return ("manifest_url", "trust", "did", "jwks", "name", "user", "seen")
        return super().get_fields(request, obj)

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        """Make all fields of an existing peer read-only."""
        return () if obj is None else super().get_readonly_fields(request, obj)

    def get_inlines(self, request: HttpRequest, obj: Any) -> Any:
        """Show the keys of an existing peer."""
        return () if obj is None else super().get_inlines(request, obj)

    def save_model(self, request: Any, obj: Any, form: Any, change: Any) -> None:
        """Do nothing, since the form has added the row."""


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
        "peer", "stream_id", "receiver", "window", "acknowledged", "session_id", "response_id",
        "created_at",
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
    )
