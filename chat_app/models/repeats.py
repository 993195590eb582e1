"""Requests that their clients may repeat."""

from __future__ import annotations

from typing import ClassVar

from django.conf import settings
from django.db import models
from django.utils import timezone


class RepeatedRequest(models.Model):
    """A POST with an `Idempotency-Key`, and its answer once there is one.

    `status` is None while the request is being answered. `answer` is the body, encrypted.
    """

    id: models.BigAutoField[int, int] = models.BigAutoField(primary_key=True)
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.CASCADE, related_name="+", db_index=False
    )
    key = models.CharField(max_length=128)
    request_sha256 = models.CharField(max_length=64)
    status = models.PositiveSmallIntegerField(null=True, blank=True)
    location = models.CharField(max_length=500, blank=True)
    answer = models.TextField(blank=True)
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        """A person's key is for one request."""

        constraints: ClassVar = [
            models.UniqueConstraint(fields=["user", "key"], name="one_request_per_key")
        ]

    def __str__(self) -> str:
        return self.key
