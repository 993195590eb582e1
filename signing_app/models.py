"""The keys with which owners sign: the current one, and earlier ones.

An owner is a text, because a key outlives its owner: what a deleted agent signed stays verifiable.
"""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.db.models import Q
from django.utils import timezone


class PublishedKey(models.Model):
    """A key of one owner. Its private half is stored, encrypted, only while it signs.

    `retired_at` of a key with an overlap is in the future until the next key signs.
    """

    kid = models.CharField(primary_key=True, max_length=16)
    # `agent:<id>`, `receipts`, `log`, `tree`, `shares`, `cards`, `push`, `federation` or
    # `capabilities`: see `owner_keys`.
    owner = models.CharField(max_length=60)
    algorithm = models.CharField(max_length=10)
    # The public half as a JSON Web Key (RFC 7517).
    jwk = models.JSONField()
    secret = models.TextField(blank=True)
    created_at = models.DateTimeField(default=timezone.now)
    retired_at = models.DateTimeField(null=True, blank=True)
    # Until when it signs the documents that list the key after it; None for owners without overlap.
    vouches_until = models.DateTimeField(null=True, blank=True)
    # Set for a key that may have leaked: what it signed is no longer trusted.
    withdrawn_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        """An owner signs with one key at a time; a retired one that does not vouch, with none."""

        verbose_name = "signing key"
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["owner"],
                condition=Q(retired_at__isnull=True),
                name="an_owner_signs_with_one_key",
            ),
            models.CheckConstraint(
                condition=Q(retired_at__isnull=True)
                | Q(vouches_until__isnull=False)
                | Q(secret=""),
                name="a_retired_key_signs_nothing",
            ),
            models.CheckConstraint(
                condition=Q(withdrawn_at__isnull=True) | Q(retired_at__isnull=False),
                name="a_withdrawn_key_is_retired",
            ),
        ]
        indexes: ClassVar = [
            models.Index(fields=["owner", "-created_at", "kid"], name="keys_of_an_owner"),
            models.Index(fields=["-created_at", "kid"], name="signing_key_listing"),
        ]
        permissions: ClassVar = [
            ("rotate_publishedkey", "Can rotate and withdraw signing keys"),
        ]

    def __str__(self) -> str:
        return self.kid
