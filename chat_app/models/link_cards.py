"""Cards for the pages that messages link to."""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.utils import timezone


class LinkCardState(models.TextChoices):
    """The state of a card: a worker was asked for it, has stored it, or found nothing to show."""

    ASKED = "asked"
    READ = "read"
    NONE = "none"


class LinkCard(models.Model):
    """A summary of a page, keyed by the SHA-256 of its address, which is not stored."""

    url_sha256 = models.CharField(primary_key=True, max_length=64)
    state = models.CharField(max_length=5, choices=LinkCardState.choices)
    title = models.CharField(max_length=200, blank=True)
    description = models.CharField(max_length=300, blank=True)
    site = models.CharField(max_length=80, blank=True)
    # When a worker was last asked.
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        """The oldest are deleted."""

        indexes: ClassVar = [models.Index(fields=["created_at"], name="link_cards_by_age")]

    def __str__(self) -> str:
        return self.url_sha256
