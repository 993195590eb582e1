"""Peers, their keys, the envelopes received from them, and the streams that answer them."""

from __future__ import annotations

from typing import ClassVar

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils import timezone


class PeerTrust(models.TextChoices):
    """The source of a peer's keys."""

    MANIFEST = "manifest", "by manifest: the keys that its DID document has now"
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
    # the streams that it reads at a time.
    max_body_kb = models.PositiveIntegerField(null=True, blank=True)
    rate_lph = models.PositiveIntegerField(null=True, blank=True)
    kb_per_hour = models.PositiveIntegerField(null=True, blank=True)
    max_streams = models.PositiveIntegerField(null=True, blank=True)

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


class EnvelopeStream(models.Model):
    """The session and response of an `ask`, or the chat that a `subscribe` follows.

    `acknowledged` is the position of its reader.
    """

    id: models.BigAutoField[int, int] = models.BigAutoField(primary_key=True)
    peer = models.ForeignKey(Peer, models.CASCADE, related_name="streams", db_index=False)
    stream_id = models.CharField(max_length=128)
    # The DID that was asked, which is one of ours.
    receiver = models.CharField(max_length=512)
    window = models.PositiveIntegerField()
    # The last acknowledged delta; -1 for none.
    acknowledged = models.BigIntegerField(default=-1)
    # The chat that a `subscribe` follows; "" for an `ask`.
    chat_id = models.CharField(max_length=64, db_default="", blank=True)
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
    created_at = models.DateTimeField(default=timezone.now)
    stream = models.ForeignKey(
        EnvelopeStream, models.CASCADE, null=True, blank=True, related_name="envelopes"
    )

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
