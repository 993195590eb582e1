"""The Django application."""

from django.apps import AppConfig


class AuditConfig(AppConfig):
    """A record of what operators did and read."""

    name = "audit_app"
    verbose_name = "Audit"
