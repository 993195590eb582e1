"""The Django application."""

from django.apps import AppConfig


class SessionsAppConfig(AppConfig):
    """Its name and the kind of its automatic ids."""

    name = "sessions_app"
    verbose_name = "Sessions"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Have trials of agents paid: `agents_app` knows no money."""
        from agents_app.admin import trial  # noqa: PLC0415 models are not loaded before
        from sessions_app.billing.trial_payments import TrialPayment  # noqa: PLC0415 as above

        trial.paid_by(TrialPayment)
