"""The Django application."""

from django.apps import AppConfig


class SigningAppConfig(AppConfig):
    """Its name, as Django and operators read it."""

    name = "signing_app"
    verbose_name = "Signatures"
