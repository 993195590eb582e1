"""API keys and one-time tickets; only hashes of their secrets are stored."""

from __future__ import annotations

import hashlib
import secrets
from typing import ClassVar, Final

from django.conf import settings
from django.db import models
from django.utils import timezone

from agents_app.rest.rights import EVERYTHING, Rights

KEY_CREDENTIAL: Final = "key:"
"""Prefix of the name under which the ledger records a key's spending."""


def all_scopes() -> list[str]:
    """Return the scopes of an unrestricted key: everything its owner may do."""
    return [EVERYTHING]


class ApiKey(models.Model):
    """A program's API key. Its prefix is visible; the secret part is stored only as a hash.

    `agents_app.rest.rights` defines what a key may do. Where `chats`, `agents` or `protocols` is
    not None, the key is limited to those chat ids, agent ids or protocol names.
    """

    id: models.BigAutoField[int, int] = models.BigAutoField(primary_key=True)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="api_keys")
    name = models.CharField(max_length=100, blank=True)
    prefix = models.CharField(max_length=16, unique=True)
    sha256 = models.CharField(max_length=64)
    scopes = models.JSONField(default=all_scopes, blank=True)
    chats = models.JSONField(null=True, blank=True)
    agents = models.JSONField(null=True, blank=True)
    protocols = models.JSONField(null=True, blank=True)
    # Whether `credential` has a spending limit. The amount is stored with the other limits.
    has_budget = models.BooleanField(default=False, db_default=False)
    # How often the secret was rotated. The previous one is valid until `previous_until`.
    version = models.PositiveIntegerField(default=0, db_default=0)
    previous_sha256 = models.CharField(max_length=64, blank=True, default="", db_default="")
    previous_until = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(default=timezone.now)
    expires_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)
    used_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        """Names and permissions for the admin."""

        verbose_name = "API key"
        permissions: ClassVar = [
            ("revoke_key", "Can revoke keys of others"),
            ("rotate_key", "Can rotate keys of others"),
        ]

    def __str__(self) -> str:
        return f"{self.prefix}…"

    @property
    def credential(self) -> str:
        """The name under which the ledger records the key's spending."""
        return f"{KEY_CREDENTIAL}{self.pk}"

    @property
    def rights(self) -> Rights:
        """The subset of its owner's rights that the key grants."""
        return Rights(
            scopes=frozenset(self.scopes),
            chats=None if self.chats is None else frozenset(self.chats),
            agents=None if self.agents is None else frozenset(self.agents),
            protocols=None if self.protocols is None else frozenset(self.protocols),
            has_budget=self.has_budget,
        )

    def accepts(self, version: int) -> bool:
        """Return whether its secret of a version is valid: the current one, or one still kept."""
        if version == self.version - 1:
            return self.previous_until is not None and self.previous_until > timezone.now()
        return version == self.version

    @staticmethod
    def make_secret(prefix: str = "") -> str:
        """Return a new key: `uak_`, 8 hex digits, `_` and 256 random bits, which need no slow hash.

        Given the `prefix` of an existing key, return a new secret for that key.
        """
        return f"{prefix or f'uak_{secrets.token_hex(4)}'}_{secrets.token_urlsafe(32)}"

    @staticmethod
    def split_secret(secret: str) -> tuple[str, str]:
        """Return the prefix that identifies the row and the hash that verifies the secret."""
        return secret[:12], hashlib.sha256(secret.encode()).hexdigest()


class ExternalIdentity(models.Model):
    """A person's identity at another issuer, from its tokens (`bearer_tokens`) or from sign-in."""

    id: models.BigAutoField[int, int] = models.BigAutoField(primary_key=True)
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.CASCADE, related_name="external_identities"
    )
    issuer = models.CharField(max_length=255)
    subject = models.CharField(max_length=255)
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        """A subject maps to one person; a person may have identities at several issuers."""

        verbose_name_plural = "external identities"
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["issuer", "subject"], name="subject_is_one_person")
        ]
        indexes: ClassVar = [models.Index(fields=["subject"], name="identities_of_a_subject")]

    def __str__(self) -> str:
        return f"{self.subject} of {self.issuer}"


class TicketKind(models.TextChoices):
    """The purposes of tickets."""

    CONNECTION = "connection", "one socket or stream"
    SESSIONS = "sessions", "sessions of one agent (client secret)"


class Ticket(models.Model):
    """An unused one-time ticket, or a client secret (`access.tickets`).

    The secret is not stored.
    """

    sha256 = models.CharField(primary_key=True, max_length=64)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="+")
    # The credential that the ticket was issued for: an API key, or a cookie's Django session.
    api_key = models.ForeignKey(ApiKey, models.CASCADE, null=True, blank=True, related_name="+")
    # Which secret of the key it was issued for, as in `ApiKey.version`.
    key_version = models.PositiveIntegerField(default=0, db_default=0)
    web_session = models.CharField(max_length=40, blank=True)
    # The rights, expiry and actors of the token that the ticket was issued for (`access.tickets`).
    token = models.JSONField(default=dict, db_default={}, blank=True)
    expires_at = models.DateTimeField(db_index=True)
    kind = models.CharField(max_length=10, choices=TicketKind, default=TicketKind.CONNECTION.value)
    # For client secrets: the only agent whose sessions it can open, and their configuration.
    agent = models.CharField(max_length=256, blank=True)
    config = models.JSONField(default=dict)

    def __str__(self) -> str:
        return f"of {self.user_id} until {self.expires_at}"
