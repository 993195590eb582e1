"""The Django application."""

from django.apps import AppConfig


class SigningAppConfig(AppConfig):
    """The app's name, for Django and for operators."""

    name = "signing_app"
    verbose_name = "Signatures"
