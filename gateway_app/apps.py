"""The Django application."""

from django.apps import AppConfig


class GatewayAppConfig(AppConfig):
    """The app's configuration. It has no models."""

    name = "gateway_app"
    verbose_name = "Foreign protocols"

    def ready(self) -> None:
        """Register A2A's webhook format, which both workers and servers send."""
        from gateway_app.a2a.notifications import register_formats  # noqa: PLC0415 models are not loaded earlier

        register_formats()
