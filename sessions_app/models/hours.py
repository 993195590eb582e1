"""Hourly totals of answers and charges, for the operators' figures.

The answers and the ledger are authoritative. Totals let a page of figures read a few thousand rows
instead of a million. `sessions_app.reporting.hours` writes them.
"""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.utils import timezone


class CountedHour(models.Model):
    """An hour (UTC) whose answers and charges have been counted.

    It is incomplete if an answer requested in it was still running, and is then counted again.
    """

    hour = models.DateTimeField(primary_key=True)
    is_complete = models.BooleanField(default=False)
    counted_at = models.DateTimeField(default=timezone.now)

    class Meta:
        """Few hours have to be counted again."""

        indexes: ClassVar = [
            models.Index(
                fields=["hour"], condition=models.Q(is_complete=False), name="hours_to_count"
            )
        ]

    def __str__(self) -> str:
        return f"{self.hour:%Y-%m-%d %H:00}"


class AnswerHour(models.Model):
    """Ended answers by the hour of their request, by agent, transport and outcome.

    `cause` is the error code of failed answers, and empty for others.
    """

    id: models.BigAutoField[int, int] = models.BigAutoField(primary_key=True)
    hour = models.DateTimeField()
    agent_id = models.CharField(max_length=40)
    transport = models.CharField(max_length=24, blank=True)
    status = models.CharField(max_length=12)
    cause = models.CharField(max_length=60, blank=True)
    answers = models.PositiveIntegerField()
    input_tokens = models.BigIntegerField()
    output_tokens = models.BigIntegerField()

    class Meta:
        """One row per combination."""

        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["hour", "agent_id", "transport", "status", "cause"],
                name="answers_of_an_hour_are_counted_once",
            )
        ]

    def __str__(self) -> str:
        return f"{self.hour:%Y-%m-%d %H:00} {self.agent_id} {self.status}"


class ChargeHour(models.Model):
    """An hour's charges minus refunds, by agent and protocol, in units of `asset`."""

    id: models.BigAutoField[int, int] = models.BigAutoField(primary_key=True)
    hour = models.DateTimeField()
    agent_id = models.CharField(max_length=40, blank=True)
    protocol = models.CharField(max_length=20, blank=True)
    asset = models.CharField(max_length=10)
    amount = models.BigIntegerField()

    class Meta:
        """One row per combination."""

        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["hour", "agent_id", "protocol", "asset"],
                name="charges_of_an_hour_are_counted_once",
            )
        ]

    def __str__(self) -> str:
        return f"{self.hour:%Y-%m-%d %H:00} {self.agent_id} {self.amount}"
