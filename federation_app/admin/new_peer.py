"""The form for a new peer: what its documents say is shown, and then trusted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Final, NoReturn

from django import forms

from federation_app.envelope.errors import EnvelopeError, malformed
from federation_app.models import Peer, PeerTrust
from federation_app.peers import hubs, registry
from federation_app.peers.documents import documents_at

if TYPE_CHECKING:
    from collections.abc import Iterator

    from federation_app.peers.documents import PeerDocuments

    # Only the stubs give Django's classes type parameters.
    _PeerForm = forms.ModelForm[Peer]
else:
    _PeerForm = forms.ModelForm

MAX_LISTED: Final = 50
"""How many children and trust anchors of a hub are shown; the others are counted."""


class NewPeerForm(_PeerForm):
    """A new peer: the address of its manifest or hub, or its name with its keys.

    It is added once the operator has seen what its documents say: the first time, and whenever they
    have changed since, the form shows that and `seen` remembers which documents those were.

    `documents` are those at that address, or the error in them. They are fetched before the form's
    transaction, which would block all other writers on SQLite.
    """

    documents: ClassVar[PeerDocuments | EnvelopeError | None] = None
    manifest_url = forms.CharField(
        required=False,
        max_length=600,
        help_text="https://HOST/.well-known/agent-manifest.json: its name and keys are read there."
        " For a hub: https://HOST/.well-known/agent-hub.json.",
    )
    address = forms.URLField(
        required=False,
        max_length=300,
        assume_scheme="https",
        help_text="Only if the server is not at https:// and the host of its name: its documents"
        " are read there, and envelopes are posted there. Private addresses have to be in"
        " UAMP_REMOTE_ALLOW_HOSTS.",
    )
    did = forms.CharField(
        required=False, max_length=512, help_text="did:web:HOST. Only if trust is “by operator”."
    )
    jwks = forms.JSONField(
        required=False, help_text='Its public keys: {"keys": […]}. Only if trust is “by operator”.'
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
            elif isinstance(self.documents, EnvelopeError) or self.documents is None:
                raise self.documents or malformed("Enter the address of the manifest.")
            elif values["seen"] != self.documents.sha256:
                self._show(self.documents)
            else:
                add = registry.add_peer if self.documents.hub is None else hubs.add_hub
                peer = add(self.documents, trust=PeerTrust(values["trust"]), **chosen)
        except EnvelopeError as error:
            raise forms.ValidationError(f"{error.code.value}: {error.message}") from None
        self.instance = peer
        return values

    def _show(self, documents: PeerDocuments) -> NoReturn:
        """Show what an address leads to, and ask for trust in it."""
        self.data = {**self.data.dict(), "seen": documents.sha256}  # type: ignore[attr-defined]  # a QueryDict
        raise forms.ValidationError([*_lines(documents), "Save again to trust it."])

    def _post_clean(self) -> None:
        """Leave the row as it was added, since the form has no other values for it."""


def _lines(documents: PeerDocuments) -> Iterator[str]:
    """Yield the lines that summarise a peer's documents."""
    manifest = documents.manifest
    yield f"Found {documents.identity.did}: {manifest.description[:500] or 'no description'}"
    yield f"It speaks {manifest.agent}, with the intents {', '.join(manifest.intents)}."
    yield f"It reads {', '.join(manifest.body_types) or 'any content'}."
    limits = [f"{name} {value}" for name, value in documents.manifest_limits.items()]
    yield f"Its limits: {', '.join(limits) or 'none'}."
    host = documents.base.rstrip("/") or f"https://{documents.identity.authority}"
    socket = host.replace("http", "ws", 1)
    yield f"Its endpoints: {host}/v1/messages, {host}/v1/stream/…, {socket}/uamp/1/ws."
    for key in documents.keys:
        yield f"It signs with {key.algorithm}, key {key.kid}."
    if documents.hub is not None:
        children = [f"{child.did} ({child.url})" for child in documents.hub.manifests]
        yield f"As a hub it lists {_shown(children)}"
        yield f"Its trust anchors: {_shown(documents.hub.trust_anchors)}"


def _shown(names: list[str]) -> str:
    if not names:
        return "none."
    more = len(names) - MAX_LISTED
    return ", ".join(names[:MAX_LISTED]) + (f" and {more} more." if more > 0 else ".")


def fetch_documents(values: Any) -> PeerDocuments | EnvelopeError | None:
    """Return the documents of a new peer, or the error in them; None if none are needed."""
    if values.get("trust") == PeerTrust.OPERATOR or not values.get("manifest_url"):
        return None
    try:
        return documents_at(values["manifest_url"], base=values.get("address", ""))
    except EnvelopeError as error:
        return error
