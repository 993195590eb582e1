"""The Django application config."""

from django.apps import AppConfig


class AgentsConfig(AppConfig):
    """Agents: their rows and the code that runs them."""

    name = "agents_app"
    verbose_name = "Agents"

    def ready(self) -> None:
        """Drop an agent from the cache whenever its row changes."""
        from agents_app import selectors  # noqa: PLC0415 models are ready only now

        selectors.connect_cache()
