"""Answers and charges of each hour, counted once: figures for operators.

The rows of answers and of the ledger are what is true; these are sums of them, so that a page of
figures reads a few thousand rows and not a million. `sessions_app.reporting.hours` writes them.
"""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.utils import timezone


class CountedHour(models.Model):
    """An hour (UTC) whose answers and charges are counted.

    It is not complete while an answer that was asked for in it still runs: it is counted again.
    """

    hour = models.DateTimeField(primary_key=True)
    is_complete = models.BooleanField(default=False)
    counted_at = models.DateTimeField(default=timezone.now)

    class Meta:
        """Hours that are to be counted again are few."""

        indexes: ClassVar = [
            models.Index(
                fields=["hour"], condition=models.Q(is_complete=False), name="hours_to_count"
            )
        ]

    def __str__(self) -> str:
        return f"{self.hour:%Y-%m-%d %H:00}"


class AnswerHour(models.Model):
    """The ended answers that were asked for in an hour, by agent, transport and end.

    `cause` is the code of the error of failed ones, empty for the others.
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
        """A row for each combination that there was."""

        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["hour", "agent_id", "transport", "status", "cause"],
                name="answers_of_an_hour_are_counted_once",
            )
        ]

    def __str__(self) -> str:
        return f"{self.hour:%Y-%m-%d %H:00} {self.agent_id} {self.status}"


class ChargeHour(models.Model):
    """Charges of an hour less refunds, by agent and protocol, in units of `asset`."""

    id: models.BigAutoField[int, int] = models.BigAutoField(primary_key=True)
    hour = models.DateTimeField()
    agent_id = models.CharField(max_length=40, blank=True)
    protocol = models.CharField(max_length=20, blank=True)
    asset = models.CharField(max_length=10)
    amount = models.BigIntegerField()

    class Meta:
        """A row for each combination that there was."""

        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["hour", "agent_id", "protocol", "asset"],
                name="charges_of_an_hour_are_counted_once",
            )
        ]

    def __str__(self) -> str:
        return f"{self.hour:%Y-%m-%d %H:00} {self.agent_id} {self.amount}"
