"""Calls between the people of a chat, one at a time, and who takes part."""

from __future__ import annotations

from typing import ClassVar

from django.conf import settings
from django.db import models
from django.utils import timezone

from chat_app.models.chats import Chat


class CallState(models.TextChoices):
    """The states of a call; `chat_app.calls.states` has the transitions."""

    RINGING = "ringing"
    RUNNING = "running"
    ENDED = "ended"


class CallMemberState(models.TextChoices):
    """The states of a person in a call; `chat_app.calls.states` has the transitions."""

    RINGING = "ringing"
    JOINED = "joined"
    DECLINED = "declined"
    MISSED = "missed"
    LEFT = "left"


class CallReason(models.TextChoices):
    """How a call ended: after people spoke, or unanswered."""

    ENDED = "ended"
    DECLINED = "declined"
    UNANSWERED = "unanswered"
    CANCELLED = "cancelled"


class CallAgentReason(models.TextChoices):
    """Why an agent is no longer in a call."""

    REMOVED = "removed"
    HOST_LEFT = "host_left"
    NOT_MEMBER = "not_member"
    ENDED = "ended"


class VoiceCall(models.Model):
    """A call in a chat. Media flow between the clients; the server holds only the state.

    `call_id` is chosen by the client or the server and unique within the chat. `revision` grows
    with each change. `answered_at` is when the second person joined.
    """

    id: models.BigAutoField[int, int] = models.BigAutoField(primary_key=True)
    chat = models.ForeignKey(Chat, models.CASCADE, related_name="calls", db_index=False)
    call_id = models.CharField(max_length=128)
    started_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, blank=True, related_name="+"
    )
    state = models.CharField(max_length=8, choices=CallState.choices, default=CallState.RINGING)
    media = models.JSONField(default=list)
    revision = models.PositiveIntegerField(default=1)
    started_at = models.DateTimeField(default=timezone.now)
    answered_at = models.DateTimeField(null=True, blank=True)
    ended_at = models.DateTimeField(null=True, blank=True)
    reason = models.CharField(max_length=12, choices=CallReason.choices, blank=True)

    class Meta:
        """A chat has at most one call in progress."""

        constraints: ClassVar = [
            models.UniqueConstraint(fields=["chat", "call_id"], name="call_has_its_id_once"),
            models.UniqueConstraint(
                fields=["chat"],
                condition=models.Q(ended_at__isnull=True),
                name="one_call_goes_on_in_a_chat",
            ),
            models.CheckConstraint(
                condition=(
                    models.Q(state=CallState.ENDED, ended_at__isnull=False)
                    | models.Q(
                        state__in=[CallState.RINGING, CallState.RUNNING], ended_at__isnull=True
                    )
                ),
                name="an_ended_call_has_its_end",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.call_id} in {self.chat_id}"


class VoiceCallMember(models.Model):
    """A person who is called or takes part in a call, in one session at a time.

    The process that holds the session renews `seen_at`; a person not seen for a while has left.
    """

    id: models.BigAutoField[int, int] = models.BigAutoField(primary_key=True)
    call = models.ForeignKey(VoiceCall, models.CASCADE, related_name="members", db_index=False)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="+")
    state = models.CharField(max_length=8, choices=CallMemberState.choices)
    # The id of the session in which the person takes part.
    session_id = models.CharField(max_length=64, blank=True)
    joined_at = models.DateTimeField(null=True, blank=True)
    seen_at = models.DateTimeField(null=True, blank=True)
    rings_until = models.DateTimeField(null=True, blank=True)

    class Meta:
        """A person is in a call once."""

        constraints: ClassVar = [
            models.UniqueConstraint(fields=["call", "user"], name="person_is_in_a_call_once")
        ]

    def __str__(self) -> str:
        return f"{self.user_id} in call {self.call_id}"


class VoiceCallAgent(models.Model):
    """An agent that takes part in a call through the client of one participant, its host.

    The host's client streams the call to the agent and plays its answers, which count as the host's
    requests. `left_at` is null while the agent takes part.
    """

    id: models.BigAutoField[int, int] = models.BigAutoField(primary_key=True)
    call = models.ForeignKey(VoiceCall, models.CASCADE, related_name="agents", db_index=False)
    agent = models.ForeignKey("agents_app.Agent", models.CASCADE, related_name="+")
    host = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="+")
    joined_at = models.DateTimeField()
    left_at = models.DateTimeField(null=True, blank=True)
    reason = models.CharField(max_length=12, choices=CallAgentReason.choices, blank=True)

    class Meta:
        """An agent is in a call once."""

        constraints: ClassVar = [
            models.UniqueConstraint(fields=["call", "agent"], name="agent_is_in_a_call_once"),
            models.CheckConstraint(
                condition=(
                    models.Q(left_at__isnull=True, reason="")
                    | (models.Q(left_at__isnull=False) & ~models.Q(reason=""))
                ),
                name="agent_left_a_call_for_a_reason",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.agent_id} in call {self.call_id}"
