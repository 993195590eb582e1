"""Connected agents: which process holds the socket on which a daemon registered an agent."""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.utils import timezone

from agents_app.models.agents import Agent


class ProcessLease(models.Model):
    """A server process, which renews `lease_until` every second while it is alive.

    When the lease expires, its connections are deleted with it, and others take its responses over.
    """

    id = models.CharField(primary_key=True, max_length=40)
    lease_until = models.DateTimeField()

    def __str__(self) -> str:
        return self.id


class AgentConnection(models.Model):
    """One agent that a daemon registered on one socket (UAMP §10.2).

    `connection` names the socket within its process. `answers` is the number of responses that the
    daemon is working on, written with a short delay. A connection that `is_closing` gets no new
    ones. `address` is the daemon's, `api_key_id` the key (sessions_app) that it registered with.
    """

    id: models.BigAutoField[int, int] = models.BigAutoField(primary_key=True)
    agent = models.ForeignKey(Agent, models.CASCADE, related_name="connections")
    process = models.ForeignKey(ProcessLease, models.CASCADE, related_name="connections")
    connection = models.CharField(max_length=40)
    answers = models.PositiveIntegerField(default=0)
    is_closing = models.BooleanField(default=False)
    # When an operator disconnected it; its process ends the registration and deletes the row.
    disconnect_requested_at = models.DateTimeField(null=True, blank=True)
    address = models.CharField(max_length=45, blank=True, default="", db_default="")
    api_key_id = models.BigIntegerField(null=True, blank=True)
    # The capabilities that the daemon announced in `session.create` (UAMP §9).
    capabilities = models.JSONField(null=True, blank=True)
    connected_at = models.DateTimeField(default=timezone.now)

    class Meta:
        """Each constraint is named after the sentence that it keeps true."""

        verbose_name = "connected daemon"
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["connection", "agent"], name="agent_is_registered_once_on_a_socket"
            )
        ]

    def __str__(self) -> str:
        return f"{self.agent} at {self.process_id}"
