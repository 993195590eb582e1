"""Files that arrive in parts."""

from __future__ import annotations

import uuid
from typing import ClassVar

from django.conf import settings
from django.db import models
from django.utils import timezone

from chat_app.models.chats import Content


class Upload(models.Model):
    """A file that a person sends in parts (tus 1.0), until it is complete or has expired.

    `offset` is the number of bytes received. `content` is the file, once it is complete and
    checked.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4)
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="+")
    length = models.PositiveBigIntegerField()
    offset = models.PositiveBigIntegerField(default=0)
    filename = models.CharField(max_length=255, blank=True)
    mime_type = models.CharField(max_length=127)
    content = models.ForeignKey(
        Content, models.SET_NULL, null=True, blank=True, related_name="+", db_index=False
    )
    created_at = models.DateTimeField(default=timezone.now)
    expires_at = models.DateTimeField()

    class Meta:
        """Expired uploads are found by their time."""

        indexes: ClassVar = [models.Index(fields=["expires_at"], name="uploads_by_expiry")]

    def __str__(self) -> str:
        return f"{self.offset} of {self.length} bytes"


class UploadPart(models.Model):
    """The bytes of an upload from `start` on."""

    id: models.BigAutoField[int, int] = models.BigAutoField(primary_key=True)
    upload = models.ForeignKey(Upload, models.CASCADE, related_name="parts", db_index=False)
    start = models.PositiveBigIntegerField()
    blob = models.FileField(upload_to="uploads/%Y/%m", max_length=255)

    class Meta:
        """Each byte arrives once."""

        constraints: ClassVar = [
            models.UniqueConstraint(fields=["upload", "start"], name="each_part_arrives_once")
        ]

    def __str__(self) -> str:
        return f"from {self.start}"
