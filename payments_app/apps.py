"""The Django application."""

from importlib import import_module

from django.apps import AppConfig


class PaymentsAppConfig(AppConfig):
    """Its name and the kind of its automatic ids."""

    name = "payments_app"
    verbose_name = "Payments"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Register the second half of the admin: Django looks for `admin` alone."""
        import_module("payments_app.spending_admin")
