"""The Django application."""

from django.apps import AppConfig


class FederationAppConfig(AppConfig):
    """Its name."""

    name = "federation_app"
    verbose_name = "Federation"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Delete old envelopes with other old rows, and ask the agents of peers."""
        from agents_app.remote.protocols import peers  # noqa: PLC0415 models are not loaded before
        from federation_app.asking import conversation  # noqa: PLC0415 as above
        from federation_app.exchange.admission import forget_old  # noqa: PLC0415 as above
        from sessions_app.process import retention  # noqa: PLC0415 as above

        retention.also_delete(forget_old)
        peers.asked_by(conversation.ask)
