"""API keys and one-time tickets; neither row keeps the secret."""

from __future__ import annotations

import hashlib
import secrets

from django.conf import settings
from django.db import models
from django.utils import timezone


class ApiKey(models.Model):
    """A key of a program. The prefix is shown, the secret part is kept as a hash only."""

    id: models.BigAutoField[int, int] = models.BigAutoField(primary_key=True)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="api_keys")
    name = models.CharField(max_length=100, blank=True)
    prefix = models.CharField(max_length=16, unique=True)
    sha256 = models.CharField(max_length=64)
    # Of older versions, whose admin kept it as a note: a key may do all that its owner may.
    scopes = models.JSONField(default=list, blank=True)
    created_at = models.DateTimeField(default=timezone.now)
    expires_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)
    used_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        """The admin shows this name."""

        verbose_name = "API key"

    def __str__(self) -> str:
        return f"{self.prefix}…"

    @staticmethod
    def make_secret() -> str:
        """Return a new key: `uak_`, 8 hex, `_`, 256 random bits; those need no slow hash."""
        return f"uak_{secrets.token_hex(4)}_{secrets.token_urlsafe(32)}"

    @staticmethod
    def split_secret(secret: str) -> tuple[str, str]:
        """Return the prefix that names the row and the hash that proves the rest."""
        return secret[:12], hashlib.sha256(secret.encode()).hexdigest()


class TicketKind(models.TextChoices):
    """What a ticket opens."""

    CONNECTION = "connection", "one socket or stream"
    SESSIONS = "sessions", "sessions of one agent (client secret)"


class Ticket(models.Model):
    """A one-time ticket that is not used yet, or a client secret (`access.tickets`).

    Its secret is not kept.
    """

    sha256 = models.CharField(primary_key=True, max_length=64)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="+")
    # The credential that the ticket was issued for: a key, or the Django session of a cookie.
    api_key = models.ForeignKey(ApiKey, models.CASCADE, null=True, blank=True, related_name="+")
    web_session = models.CharField(max_length=40, blank=True)
    expires_at = models.DateTimeField(db_index=True)
    kind = models.CharField(max_length=10, choices=TicketKind, default=TicketKind.CONNECTION.value)
    # Of a client secret: the only agent that it opens sessions of, and their configuration.
    agent = models.CharField(max_length=256, blank=True)
    config = models.JSONField(default=dict)

    def __str__(self) -> str:
        return f"of {self.user_id} until {self.expires_at}"
