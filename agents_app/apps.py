"""The application's name for Django."""

from django.apps import AppConfig


class AgentsConfig(AppConfig):
    """Agents: their rows, and what runs them."""

    name = "agents_app"
    verbose_name = "Agents"

    def ready(self) -> None:
        """Forget a cached agent when its row changes."""
        from agents_app import selectors  # noqa: PLC0415 models are ready only now

        selectors.connect_cache()
