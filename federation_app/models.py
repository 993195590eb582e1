"""Peers, their keys, the envelopes received from them, and the streams that answer them.

Chats with members on several servers (ADR 66): guests, invitations, mirrors and followers.
"""

from __future__ import annotations

from typing import ClassVar

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now
from django.utils import timezone


class PeerTrust(models.TextChoices):
    """The source of a peer's keys."""

    MANIFEST = "manifest", "by manifest: the keys that its DID document has now"
    SIGNED = "signed", "signed: new keys only if a key known before has signed for them"
    PINNED = "pinned", "pinned: the keys that it had when it was added"
    OPERATOR = "operator", "by operator: the keys that an operator entered"


class Peer(models.Model):
    """A foreign server or agent that signs envelopes, known by its `did:web` name.

    It acts for `user`, who pays for its requests. Without one, it has the rights of a visitor.
    """

    id: models.BigAutoField[int, int] = models.BigAutoField(primary_key=True)
    did = models.CharField(max_length=512, unique=True)
    name = models.CharField(max_length=100, blank=True)
    trust = models.CharField(max_length=10, choices=PeerTrust, default=PeerTrust.MANIFEST)
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, blank=True, related_name="+"
    )
    # The peer's signed manifest, and the digest of the signed bytes.
    manifest = models.JSONField(default=dict, blank=True)
    manifest_sha256 = models.CharField(max_length=64, blank=True)
    created_at = models.DateTimeField(default=timezone.now)
    # When its documents were last fetched, what was wrong with them, and since when.
    checked_at = models.DateTimeField(null=True, blank=True)
    problem = models.CharField(max_length=200, blank=True)
    failing_since = models.DateTimeField(null=True, blank=True)
    # While it is suspended, and once it is revoked, nothing that the peer signs is accepted.
    suspended_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)
    # Its own limits, below those of all peers: the size of a body, envelopes and KiB an hour, and
    # the streams that it reads concurrently.
    max_body_kb = models.PositiveIntegerField(null=True, blank=True)
    rate_lph = models.PositiveIntegerField(null=True, blank=True)
    kb_per_hour = models.PositiveIntegerField(null=True, blank=True)
    max_streams = models.PositiveIntegerField(null=True, blank=True)
    # The bytes of files that it was served since then, for at most an hour (`quotas.count_file`).
    served_bytes = models.BigIntegerField(default=0, db_default=0)
    served_since = models.DateTimeField(null=True, blank=True)
    # The base address where envelopes for it are posted; empty for https:// and its host.
    address = models.CharField(max_length=300, blank=True, default="", db_default="")
    # The base address where its documents are read; empty for https:// and its host.
    documents_address = models.CharField(max_length=300, blank=True, default="", db_default="")
    # The hub that vouches for it (envelope §8), and since when the hub no longer lists it.
    # While the hub is not trusted, or has expired, this peer is not trusted either.
    anchor = models.ForeignKey(
        "self", models.PROTECT, null=True, blank=True, related_name="children"
    )
    unlisted_at = models.DateTimeField(null=True, blank=True)
    # When its hub document was last read or, for a member of this server's hub, its manifest.
    documents_read_at = models.DateTimeField(null=True, blank=True)
    # Its hub document, if it was added as a hub, and when that expires.
    hub = models.JSONField(default=dict, blank=True, db_default={})
    hub_expires_at = models.DateTimeField(null=True, blank=True)
    # Whether envelopes between it and other such peers are passed on (`exchange.relay`). Those of a
    # hub's children are, too, if it is set for the hub.
    is_relayed = models.BooleanField(default=False, db_default=False)
    # Whether its questions are refused without a capability token (`terms.capabilities`).
    asks_need_token = models.BooleanField(default=False, db_default=False)
    # When the next envelope of a shared chat may be posted, or when another process may try; and
    # how many attempts have failed since the last success (`guests.outgoing`).
    deliver_at = models.DateTimeField(default=timezone.now, db_default=Now())
    failures = models.PositiveIntegerField(default=0, db_default=0)

    class Meta:
        """The admin lists peers newest first."""

        permissions: ClassVar = [("change_peer_trust", "Can add, refresh and revoke peers")]
        constraints: ClassVar = [
            models.CheckConstraint(
                condition=Q(trust__in=list(PeerTrust.values)), name="peer_trust_is_known"
            ),
        ]
        indexes: ClassVar = [
            models.Index(fields=["-created_at", "-id"], name="peer_listing"),
        ]

    def __str__(self) -> str:
        return self.name or self.did


class PeerKey(models.Model):
    """A public key of a peer. A revoked key is kept, so that it cannot be added again."""

    id: models.BigAutoField[int, int] = models.BigAutoField(primary_key=True)
    peer = models.ForeignKey(Peer, models.CASCADE, related_name="keys", db_index=False)
    kid = models.CharField(max_length=600)
    algorithm = models.CharField(max_length=10)
    jwk = models.JSONField()
    created_at = models.DateTimeField(default=timezone.now)
    # Its document no longer lists it; signatures made with it are refused.
    retired_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        """The constraint that stores each key of a peer once."""

        constraints: ClassVar = [
            models.UniqueConstraint(fields=["peer", "kid"], name="a_key_of_a_peer_is_known_once"),
        ]

    def __str__(self) -> str:
        return self.kid


class CapabilityToken(models.Model):
    """A token that was issued to a peer: the claims, by the id in it, not the token."""

    # The `jti`, a UUID.
    id = models.CharField(primary_key=True, max_length=36)
    peer = models.ForeignKey(Peer, models.CASCADE, related_name="+")
    # The names of this server that it is for, and the intents that it covers.
    audience = models.JSONField()
    intents = models.JSONField()
    created_at = models.DateTimeField(default=timezone.now)
    expires_at = models.DateTimeField()
    revoked_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        """The admin lists tokens newest first; the longest expired are deleted first."""

        indexes: ClassVar = [
            models.Index(fields=["-created_at", "-id"], name="capability_listing"),
            models.Index(fields=["expires_at"], name="capability_expiry"),
        ]

    def __str__(self) -> str:
        return self.id

    @property
    def summary(self) -> str:
        """The id and the claims, for the audit."""
        intents, audience = ", ".join(self.intents), ", ".join(self.audience)
        return f"{self.id} for {intents} to {audience} until {self.expires_at:%Y-%m-%d %H:%M} UTC"


class EnvelopeStream(models.Model):
    """The session and response of an `ask`, or the chat that a `subscribe` follows.

    `acknowledged` is the position of its reader.
    """

    id: models.BigAutoField[int, int] = models.BigAutoField(primary_key=True)
    peer = models.ForeignKey(Peer, models.CASCADE, related_name="streams", db_index=False)
    stream_id = models.CharField(max_length=128)
    # Its id at the member that answers it, if that differs: several answer one envelope.
    remote_id = models.CharField(max_length=128, blank=True, default="", db_default="")
    # The DID that was asked, which is one of ours.
    receiver = models.CharField(max_length=512)
    window = models.PositiveIntegerField()
    # The last acknowledged delta; -1 for none.
    acknowledged = models.BigIntegerField(default=-1)
    # The chat that a `subscribe` follows; "" for an `ask`.
    chat_id = models.CharField(max_length=64, db_default="", blank=True)
    # The peer that answers it, to which the request was passed on; None if this server does.
    relayed_to = models.ForeignKey(
        Peer, models.CASCADE, null=True, blank=True, related_name="+", db_index=False
    )
    # The wire id of the session, and the response; "" until it begins.
    session_id = models.CharField(max_length=64, blank=True)
    response_id = models.CharField(max_length=64, blank=True)
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        """The uniqueness of a stream's id per peer, and the order of the admin's list."""

        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["peer", "stream_id"], name="a_stream_is_unique_to_its_peer"
            ),
        ]
        indexes: ClassVar = [
            models.Index(fields=["-created_at", "-id"], name="envelope_stream_listing"),
        ]

    def __str__(self) -> str:
        return self.stream_id


class ReceivedEnvelope(models.Model):
    """The id and digest of an accepted envelope: the replay window, as rows."""

    id: models.BigAutoField[int, int] = models.BigAutoField(primary_key=True)
    peer = models.ForeignKey(Peer, models.CASCADE, related_name="received", db_index=False)
    envelope_id = models.CharField(max_length=36)
    sha256 = models.CharField(max_length=64)
    intent = models.CharField(max_length=10)
    # The bytes of its JSON.
    size = models.PositiveIntegerField(db_default=0)
    # The time by the peer's clock.
    signed_at = models.DateTimeField()
    # False while its payment or its act in a shared chat is under way.
    is_done = models.BooleanField(default=True, db_default=True)
    created_at = models.DateTimeField(default=timezone.now)
    stream = models.ForeignKey(
        EnvelopeStream, models.CASCADE, null=True, blank=True, related_name="envelopes"
    )
    # The peer to which it was passed on, and when that accepted it; None while it is under way.
    relayed_to = models.ForeignKey(
        Peer, models.CASCADE, null=True, blank=True, related_name="+", db_index=False
    )
    relayed_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        """The uniqueness of an envelope's id per peer, and the order of the admin's list."""

        constraints: ClassVar = [
            models.UniqueConstraint(fields=["peer", "envelope_id"], name="an_envelope_counts_once"),
        ]
        indexes: ClassVar = [
            models.Index(fields=["-created_at", "-id"], name="received_envelope_listing"),
            models.Index(fields=["peer", "created_at"], name="received_envelope_of_peer"),
        ]

    def __str__(self) -> str:
        return self.envelope_id


class Guest(models.Model):
    """A person of a peer, with the account that has their memberships and messages here.

    No one can sign in to that account, whose username is the person's full name, `name@host`. The
    peer knows the person by `remote_id`: a name may change, and may become someone else's.
    """

    id: models.BigAutoField[int, int] = models.BigAutoField(primary_key=True)
    peer = models.ForeignKey(Peer, models.PROTECT, related_name="guests", db_index=False)
    remote_id = models.CharField(max_length=64)
    user = models.OneToOneField(settings.AUTH_USER_MODEL, models.CASCADE, related_name="+")
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        """A person has one account."""

        constraints: ClassVar = [
            models.UniqueConstraint(fields=["peer", "remote_id"], name="a_guest_has_one_account"),
        ]
        indexes: ClassVar = [models.Index(fields=["-created_at", "-id"], name="guest_listing")]

    def __str__(self) -> str:
        return f"{self.remote_id} of {self.peer_id}"


class InvitationState(models.TextChoices):
    """The state of an invitation to a chat of another server."""

    OPEN = "open"
    ACCEPTED = "accepted"
    DECLINED = "declined"
    BLOCKED = "blocked", "declined, and no more from this person"
    WITHDRAWN = "withdrawn"
    ENDED = "ended", "accepted, and the membership has ended"
    REFUSED = "refused", "refused by the other server"


class GuestInvitation(models.Model):
    """An invitation of a person of a peer to a chat here, or of a person here to a chat of a peer.

    `user` is the person here: the inviter or, if it was received, the invited one.
    """

    id: models.BigAutoField[int, int] = models.BigAutoField(primary_key=True)
    peer = models.ForeignKey(Peer, models.CASCADE, related_name="+", db_index=False)
    # Chosen by the inviting server, a UUID.
    invitation_id = models.CharField(max_length=36)
    is_received = models.BooleanField()
    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="+")
    # The person there: `name@host`.
    name = models.CharField(max_length=150)
    # The chat's id on its home, and its title when it was sent.
    chat_id = models.CharField(max_length=40)
    title = models.CharField(max_length=200, blank=True)
    state = models.CharField(max_length=10, choices=InvitationState, default=InvitationState.OPEN)
    # Whether the other server knows the state.
    is_sent = models.BooleanField(default=False)
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        """An invitation is received once."""

        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["peer", "invitation_id"], name="an_invitation_is_known_once"
            ),
            models.CheckConstraint(
                condition=Q(state__in=list(InvitationState.values)),
                name="invitation_state_is_known",
            ),
        ]
        indexes: ClassVar = [
            models.Index(
                fields=["peer", "id"], condition=Q(is_sent=False), name="invitations_to_send"
            ),
            models.Index(fields=["-created_at", "-id"], name="invitation_listing"),
        ]

    def __str__(self) -> str:
        return self.invitation_id


class ErasureNotice(models.Model):
    """A person here who was erased, of which a peer that knows them is not informed yet."""

    id: models.BigAutoField[int, int] = models.BigAutoField(primary_key=True)
    peer = models.ForeignKey(Peer, models.CASCADE, related_name="+", db_index=False)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="+")

    class Meta:
        """A peer is informed of an erased person once."""

        constraints: ClassVar = [
            models.UniqueConstraint(fields=["peer", "user"], name="an_erasure_is_noted_once")
        ]

    def __str__(self) -> str:
        return f"{self.user_id} to {self.peer_id}"


class ChatMirror(models.Model):
    """A chat here whose log belongs to a peer, and how far each side has the other's entries."""

    id: models.BigAutoField[int, int] = models.BigAutoField(primary_key=True)
    peer = models.ForeignKey(Peer, models.CASCADE, related_name="mirrors", db_index=False)
    home_chat_id = models.CharField(max_length=40)
    chat_id = models.CharField(max_length=40, unique=True)
    # The last entry of the home's log that is applied here.
    applied_seq = models.BigIntegerField(default=0)
    # The last entry of this log that the home knows.
    sent_seq = models.BigIntegerField(default=0)
    # The epoch of the home's log, which changes when a backup is restored there.
    home_epoch = models.CharField(max_length=64, blank=True, default="", db_default="")
    # Whether an entry was missing: the home is asked to resume after `applied_seq`.
    is_behind = models.BooleanField(default=False)
    # Until when its next item is not posted, because the peer still fetches the files of it.
    held_until = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        """A chat of a peer has one mirror."""

        constraints: ClassVar = [
            models.UniqueConstraint(fields=["peer", "home_chat_id"], name="a_chat_has_one_mirror"),
        ]
        indexes: ClassVar = [models.Index(fields=["-created_at", "-id"], name="mirror_listing")]

    def __str__(self) -> str:
        return self.chat_id


class ChatFollower(models.Model):
    """A peer with guests in a chat here, and how far it knows the log of the chat."""

    id: models.BigAutoField[int, int] = models.BigAutoField(primary_key=True)
    peer = models.ForeignKey(Peer, models.CASCADE, related_name="followers", db_index=False)
    chat_id = models.CharField(max_length=40)
    # The entry after which its first guest joined, and the last one that it has.
    first_seq = models.BigIntegerField()
    sent_seq = models.BigIntegerField()
    # The last message accepted from the peer, by the peer's own id for it.
    last_message = models.CharField(max_length=64, blank=True)
    # Until when its next item is not posted, because the peer fetches its files or refused it.
    held_until = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        """A peer follows a chat once."""

        constraints: ClassVar = [
            models.UniqueConstraint(fields=["peer", "chat_id"], name="a_peer_follows_a_chat_once"),
        ]
        indexes: ClassVar = [models.Index(fields=["-created_at", "-id"], name="follower_listing")]

    def __str__(self) -> str:
        return f"{self.peer_id} in {self.chat_id}"
