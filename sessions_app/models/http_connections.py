"""Connections that span several HTTP requests, and their unanswered requests."""

from __future__ import annotations

import uuid
from typing import ClassVar

from django.db import models
from django.utils import timezone

from sessions_app.models.sessions import Session, SessionTransport


def new_connection_id() -> str:
    """Return the id of a connection: 128 random bits in hex."""
    return uuid.uuid4().hex


class HttpConnection(models.Model):
    """A connection of a client that posts requests and reads the answers from event streams.

    Its random id is the credential of a visitor. A person needs it in addition to their key, which
    has the rights of the one that opened the connection: its streams send what that one has read.
    """

    id = models.CharField(primary_key=True, max_length=32, default=new_connection_id)
    # See `access.principal`.
    principal = models.CharField(max_length=80)
    # The name that limits count the principal under: each visitor has a key of its own.
    counted_as = models.CharField(max_length=200, blank=True, default="", db_default="")
    # The digest of the rights of the credential that opened it.
    rights = models.CharField(max_length=64, blank=True, default="", db_default="")
    transport = models.CharField(max_length=24, choices=SessionTransport)
    # The agent named in the connection's path.
    agent = models.CharField(max_length=256, blank=True)
    created_at = models.DateTimeField(default=timezone.now)
    # Time of the last request, accurate to an hour. Unused connections are deleted (retention).
    seen_at = models.DateTimeField(default=timezone.now, db_index=True)

    class Meta:
        """The unread answers of a principal are summed over its connections."""

        indexes: ClassVar = [
            models.Index(fields=["counted_as"], name="connections_counted_together")
        ]

    def __str__(self) -> str:
        return f"{self.transport} of {self.principal}"


class UnansweredRequest(models.Model):
    """A request of an HTTP connection that no stream has answered yet."""

    id: models.BigAutoField[int, int] = models.BigAutoField(primary_key=True)
    connection = models.ForeignKey(
        HttpConnection, models.CASCADE, related_name="requests", db_index=False
    )
    # The session whose stream sends the answer, or None for the connection's own stream.
    session = models.ForeignKey(
        Session, models.CASCADE, null=True, blank=True, related_name="+", db_index=False
    )
    # The client's id for the request, as JSON.
    request_id = models.CharField(max_length=640)
    # The response whose end is the answer.
    response_id = models.CharField(max_length=40, blank=True)
    # The answer once it is ready: protocol messages, one per line.
    answer = models.TextField(blank=True)
    # Its length in characters, so that a sum over many answers does not read them.
    answer_chars = models.PositiveIntegerField(default=0, db_default=0)
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        """A connection has at most one open request per id."""

        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["connection", "request_id"], name="request_is_taken_once"
            )
        ]
        indexes: ClassVar = [models.Index(fields=["session"], name="requests_of_a_session")]

    def __str__(self) -> str:
        return f"request {self.request_id}"
