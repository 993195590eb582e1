"""The Django application."""

from django.apps import AppConfig


class SessionsAppConfig(AppConfig):
    """Its name and the kind of its automatic ids."""

    name = "sessions_app"
    verbose_name = "Sessions"
    default_auto_field = "django.db.models.BigAutoField"
