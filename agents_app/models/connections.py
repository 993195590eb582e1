"""Connected agents: which process holds a socket on which an agent's daemon registered."""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.utils import timezone

from agents_app.models.agents import Agent


class ProcessLease(models.Model):
    """A server process that holds sockets of daemons; while it lives it renews `lease_until`.

    The connections of a process whose lease ended are deleted with it.
    """

    id = models.CharField(primary_key=True, max_length=40)
    lease_until = models.DateTimeField()

    def __str__(self) -> str:
        return self.id


class AgentConnection(models.Model):
    """One agent that a daemon registered on one socket (UAMP §10.2).

    `connection` names the socket in its process. `answers` is how many responses the daemon works
    on, written a little later than it changes. A connection that `is_closing` gets no more of them.
    """

    id: models.BigAutoField[int, int] = models.BigAutoField(primary_key=True)
    agent = models.ForeignKey(Agent, models.CASCADE, related_name="connections")
    process = models.ForeignKey(ProcessLease, models.CASCADE, related_name="connections")
    connection = models.CharField(max_length=40)
    answers = models.PositiveIntegerField(default=0)
    is_closing = models.BooleanField(default=False)
    # What the daemon announced that it can do (UAMP §9), in `session.create`.
    capabilities = models.JSONField(null=True, blank=True)
    connected_at = models.DateTimeField(default=timezone.now)

    class Meta:
        """Each constraint is named after the sentence that it keeps true."""

        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["connection", "agent"], name="agent_is_registered_once_on_a_socket"
            )
        ]

    def __str__(self) -> str:
        return f"{self.agent} at {self.process_id}"
