"""The Django application."""

from django.apps import AppConfig


class PaymentsAppConfig(AppConfig):
    """The name of the app and the type of its automatic ids."""

    name = "payments_app"
    verbose_name = "Payments"
    default_auto_field = "django.db.models.BigAutoField"
