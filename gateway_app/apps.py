"""The Django application."""

from django.apps import AppConfig


class GatewayAppConfig(AppConfig):
    """Its name; it has no models."""

    name = "gateway_app"
    verbose_name = "Foreign protocols"

    def ready(self) -> None:
        """Offer webhooks in the words of A2A, which workers send as well as servers."""
        from gateway_app.a2a.notifications import register_formats  # noqa: PLC0415 models are not loaded before

        register_formats()
