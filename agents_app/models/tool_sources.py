"""Tool sources: MCP servers and how to reach them."""

from __future__ import annotations

import re
from typing import ClassVar

from django.core.validators import MaxValueValidator, MinValueValidator, RegexValidator
from django.db import models
from django.db.models import Q
from django.db.models.functions import Lower
from django.utils import timezone

SOURCE_NAME = re.compile(r"[A-Za-z0-9]+(?:_[A-Za-z0-9]+)*")
"""A tool source's name: words joined by single _, because __ separates it from the tool's name."""


class ToolSourceTransport(models.TextChoices):
    """The transport between this server and an MCP server."""

    STDIO = "stdio", "stdio (a program on this server)"
    HTTP = "http", "HTTP (streamable)"


class ToolSourceApproval(models.TextChoices):
    """The calls that a person has to approve."""

    NEVER = "never", "no calls"
    WRITES = "writes", "calls to tools that may change something"
    ALWAYS = "always", "all calls"


class ToolSource(models.Model):
    """An MCP server whose tools agents may use; `tools` is its most recent listing.

    The row says how to reach it. Values of `env` and `headers` may hold secrets and are never
    shown; `${MCP_NAME}` in them stands for an environment variable of this server.
    """

    name = models.CharField(
        max_length=24,
        validators=[
            RegexValidator(
                rf"^(?:{SOURCE_NAME.pattern})\Z", "Use letters, digits and single _ between them."
            )
        ],
        help_text="Prefix of the names of its tools: name__tool.",
    )
    transport = models.CharField(
        max_length=10, choices=ToolSourceTransport, default=ToolSourceTransport.HTTP
    )
    command = models.CharField(
        max_length=500,
        blank=True,
        help_text="For stdio: the program. The setting UAMP_MCP_COMMANDS has to list it.",
    )
    args = models.JSONField(
        default=list, blank=True, help_text='For stdio: its arguments, such as ["-m", "my_server"].'
    )
    env = models.JSONField(
        default=dict,
        blank=True,
        help_text='For stdio: its environment, such as {"TOKEN": "${MCP_TOKEN}"}. ${MCP_…} is read'
        " from this server's environment. Other values are stored and never shown again.",
    )
    url = models.CharField(
        max_length=2000, blank=True, help_text="For HTTP: the address, beginning with https://."
    )
    headers = models.JSONField(
        default=dict,
        blank=True,
        help_text="For HTTP: headers of each request, such as"
        ' {"Authorization": "Bearer ${MCP_TOKEN}"}. Values work as in the environment.',
    )
    is_enabled = models.BooleanField(default=True)
    approval = models.CharField(
        "needs approval for",
        max_length=10,
        choices=ToolSourceApproval,
        default=ToolSourceApproval.WRITES,
        help_text="The server itself says which of its tools only read.",
    )
    seconds = models.PositiveIntegerField(
        "time limit of a call",
        default=120,
        validators=[MinValueValidator(1), MaxValueValidator(3600)],
        help_text="In seconds. UAMP_TOOL_SECONDS applies as well.",
    )
    tools = models.JSONField(default=list, blank=True, editable=False)
    server = models.CharField(max_length=300, blank=True, editable=False)
    refreshed_at = models.DateTimeField(null=True, blank=True, editable=False)
    error = models.TextField(blank=True, editable=False)
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        """Each constraint is named after the sentence that it keeps true."""

        ordering: ClassVar = ["name"]
        constraints: ClassVar = [
            models.UniqueConstraint(
                Lower("name"),
                name="tool_source_name_is_unique",
                violation_error_message="There is already a source with this name.",
            ),
            models.CheckConstraint(condition=~Q(name=""), name="tool_source_has_a_name"),
            models.CheckConstraint(
                condition=Q(transport__in=["stdio", "http"]),
                name="tool_source_transport_is_known",
            ),
            models.CheckConstraint(
                condition=Q(approval__in=["never", "writes", "always"]),
                name="tool_source_approval_is_known",
            ),
        ]

    def __str__(self) -> str:
        return self.name
