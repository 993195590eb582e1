"""Admin operations on a peer and its keys."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django import forms

from audit_app.admin.operations import Operation, OperationRefused, ReasonForm
from audit_app.record import AuditAction
from federation_app.envelope.errors import EnvelopeError
from federation_app.envelope.limits import ENVELOPE_BYTES
from federation_app.models import Peer, PeerTrust
from federation_app.peers import hubs, registry

if TYPE_CHECKING:
    from django.http import HttpRequest

    from federation_app.models import PeerKey

LIMITS: Final = ("max_body_kb", "rate_lph", "kb_per_hour", "max_streams")
PROBLEMS_SHOWN: Final = 10
MAX_COUNT: Final = 10**9
RIGHT: Final = "federation_app.change_peer_trust"


def _refresh(peer: Peer, values: dict[str, Any], request: HttpRequest) -> str:
    del values, request
    try:
        return f"{registry.refresh(peer)} keys read"
    except EnvelopeError as error:
        raise OperationRefused(f"{error.code.value}: {error.message}") from None


class LimitsForm(ReasonForm):
    """The limits of one peer; an empty field leaves it those of all peers."""

    max_body_kb = forms.IntegerField(
        required=False,
        min_value=1,
        max_value=ENVELOPE_BYTES // 1024,
        help_text="Maximum size of a body, in KiB.",
    )
    rate_lph = forms.IntegerField(
        required=False,
        min_value=1,
        max_value=MAX_COUNT,
        help_text="Maximum number of envelopes per hour.",
    )
    kb_per_hour = forms.IntegerField(
        required=False,
        min_value=1,
        max_value=MAX_COUNT,
        help_text="Maximum size of all envelopes per hour, in KiB.",
    )
    max_streams = forms.IntegerField(
        required=False,
        min_value=1,
        max_value=MAX_COUNT,
        help_text="Maximum number of streams read at once.",
    )


def _limit(peer: Peer, values: dict[str, Any], request: HttpRequest) -> str:
    del request
    limits = {name: values[name] for name in LIMITS}
    if limits == {name: getattr(peer, name) for name in LIMITS}:
        return ""
    Peer.objects.filter(pk=peer.pk).update(**limits)
    limits_text = ", ".join(
        f"{name} {value}" for name, value in limits.items() if value is not None
    )
    return limits_text or "only the limits for all peers apply"


class PeerAddressForm(ReasonForm):
    """The address to which envelopes for a peer are posted."""

    address = forms.URLField(
        required=False,
        max_length=300,
        assume_scheme="https",
        help_text="Leave empty for https:// and the host of its name. Private addresses have to be"
        " in UAMP_REMOTE_ALLOW_HOSTS.",
    )


def _address(peer: Peer, values: dict[str, Any], request: HttpRequest) -> str:
    del request
    if values["address"] == peer.address:
        return ""
    Peer.objects.filter(pk=peer.pk).update(address=values["address"])
    return values["address"] or "it is at the host of its name"


def _trust_children(peer: Peer, values: dict[str, Any], request: HttpRequest) -> str:
    del values, request
    try:
        added, problems = hubs.trust_children(peer)
    except EnvelopeError as error:
        raise OperationRefused(f"{error.code.value}: {error.message}") from None
    if not added and not problems:
        return ""
    return " ".join([f"Peers added: {len(added)}.", *problems[:PROBLEMS_SHOWN]])


def _relay(peer: Peer, values: dict[str, Any], request: HttpRequest) -> str:
    del values, request
    changed = Peer.objects.filter(pk=peer.pk, is_relayed=False).update(is_relayed=True)
    return "envelopes between it and other relayed peers are relayed" if changed else ""


def _stop_relaying(peer: Peer, values: dict[str, Any], request: HttpRequest) -> str:
    del values, request
    changed = Peer.objects.filter(pk=peer.pk, is_relayed=True).update(is_relayed=False)
    return "its envelopes to and from other peers are rejected" if changed else ""


def _suspend(peer: Peer, values: dict[str, Any], request: HttpRequest) -> str:
    del values, request
    return (
        "envelopes that it signs are rejected until it is resumed" if registry.suspend(peer) else ""
    )


def _resume(peer: Peer, values: dict[str, Any], request: HttpRequest) -> str:
    del values, request
    return "envelopes that it signs are accepted again" if registry.resume(peer) else ""


def _revoke(peer: Peer, values: dict[str, Any], request: HttpRequest) -> str:
    del values, request
    return "envelopes that it signs are rejected" if registry.revoke(peer) else ""


def _revoke_key(key: PeerKey, values: dict[str, Any], request: HttpRequest) -> str:
    del values, request
    return "envelopes signed with it are rejected" if registry.revoke_key(key) else ""


REFRESH: Final = Operation(
    name="refresh",
    label="Read manifest and keys again",
    right=RIGHT,
    act=AuditAction.ROW_CHANGED,
    run=_refresh,
    facts=lambda peer: f"From now on, the keys of {peer.did} are those in its DID document.",
    is_available=lambda peer: peer.revoked_at is None and peer.trust != PeerTrust.OPERATOR,
    is_atomic=False,
)
SUSPEND: Final = Operation(
    name="suspend",
    label="Suspend peer",
    right=RIGHT,
    act=AuditAction.ROW_CHANGED,
    run=_suspend,
    facts=lambda peer: f"Everything that {peer.did} signs will be rejected until you resume it.",
    is_available=lambda peer: peer.revoked_at is None and peer.suspended_at is None,
)
RESUME: Final = Operation(
    name="resume",
    label="Resume peer",
    right=RIGHT,
    act=AuditAction.ROW_CHANGED,
    run=_resume,
    facts=lambda peer: f"Envelopes that {peer.did} signs will be accepted again.",
    is_available=lambda peer: peer.revoked_at is None and peer.suspended_at is not None,
)
LIMIT: Final = Operation(
    name="limit",
    label="Limit peer",
    right=RIGHT,
    act=AuditAction.ROW_CHANGED,
    run=_limit,
    facts=lambda peer: (
        f"Limits for {peer.did}, in addition to those for all peers. An empty field sets none."
    ),
    is_available=lambda peer: peer.revoked_at is None,
    form=LimitsForm,
)
ADDRESS: Final = Operation(
    name="address",
    label="Set address",
    right=RIGHT,
    act=AuditAction.ROW_CHANGED,
    run=_address,
    facts=lambda peer: f"Where envelopes of shared chats for {peer.did} are posted.",
    is_available=lambda peer: peer.revoked_at is None,
    form=PeerAddressForm,
)
TRUST_CHILDREN: Final = Operation(
    name="children",
    label="Trust listed peers",
    right=RIGHT,
    act=AuditAction.ROW_CHANGED,
    run=_trust_children,
    facts=lambda peer: (
        f"The names whose manifests {peer.did} lists become peers without an account, for as long"
        " as it lists them and you trust it. Names that you have added yourself stay as they are."
    ),
    is_available=lambda peer: bool(peer.hub) and peer.revoked_at is None,
    is_atomic=False,
)
RELAY: Final = Operation(
    name="relay",
    label="Relay envelopes",
    right=RIGHT,
    act=AuditAction.ROW_CHANGED,
    run=_relay,
    facts=lambda peer: (
        f"Envelopes between {peer.did} and other relayed peers will be passed on unaltered. For a"
        " hub, this includes its child peers. This server's hub document will list it."
    ),
    is_available=lambda peer: peer.revoked_at is None and not peer.is_relayed,
)
STOP_RELAYING: Final = Operation(
    name="stop_relaying",
    label="Stop relaying envelopes",
    right=RIGHT,
    act=AuditAction.ROW_CHANGED,
    run=_stop_relaying,
    facts=lambda peer: f"Envelopes between {peer.did} and other peers will be rejected.",
    is_available=lambda peer: peer.is_relayed,
)
REVOKE: Final = Operation(
    name="revoke",
    label="Revoke peer",
    right=RIGHT,
    act=AuditAction.KEY_REVOKED,
    run=_revoke,
    facts=lambda peer: f"Nothing that {peer.did} signs will be accepted, and its streams will end.",
    is_available=lambda peer: peer.revoked_at is None,
)
REVOKE_KEY: Final = Operation(
    name="revoke",
    label="Revoke key",
    right=RIGHT,
    act=AuditAction.KEY_REVOKED,
    run=_revoke_key,
    facts=lambda key: (
        f"Nothing signed with {key.kid} will be accepted, even if it is published again."
    ),
    is_available=lambda key: key.revoked_at is None,
)
