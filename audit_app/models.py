"""The rows of the audit: written once, never changed, never deleted.

Triggers in the first migration refuse UPDATE, DELETE and TRUNCATE on both databases, for every
database user, as those of the ledger do.
"""

from __future__ import annotations

from typing import ClassVar

from django.conf import settings
from django.db import models
from django.db.models.functions import Now


class AuditRecord(models.Model):
    """One use of a right: who did what to which row, when, from where and why.

    `actor` is a number without a constraint, so that erasing the person leaves the row unchanged.
    It is None if the server itself acted. `action` is an `AuditAction`. `kind` and `object_id`
    identify the row, such as `chat_app.chat` and its key; both are empty for an action without one
    (a search). `detail` states the facts, `reason` is the one that the actor gave.
    """

    id: models.BigAutoField[int, int] = models.BigAutoField(primary_key=True)
    created_at = models.DateTimeField(db_default=Now())
    actor = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        models.DO_NOTHING,
        null=True,
        blank=True,
        related_name="+",
        db_constraint=False,
        db_index=False,
    )
    action = models.CharField(max_length=40)
    kind = models.CharField(max_length=80, blank=True)
    object_id = models.CharField(max_length=80, blank=True)
    detail = models.CharField(max_length=500, blank=True)
    reason = models.CharField(max_length=500, blank=True)
    address = models.CharField(max_length=45, blank=True)

    class Meta:
        """Each filter of the page reads the newest first."""

        verbose_name = "audit record"
        verbose_name_plural = "audit"
        indexes: ClassVar = [
            models.Index(fields=["-created_at", "-id"], name="audit_times"),
            models.Index(fields=["action", "-id"], name="audit_actions"),
            models.Index(fields=["actor", "-id"], name="audit_actors"),
            models.Index(fields=["object_id", "-id"], name="audit_objects"),
            models.Index(fields=["kind", "-id"], name="audit_kinds"),
        ]

    def __str__(self) -> str:
        return f"{self.action} {self.object_id}".strip()
