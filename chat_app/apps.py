"""The Django application."""

from django.apps import AppConfig
from django.db.models.signals import post_migrate


class ChatAppConfig(AppConfig):
    """The name of the app and the type of its automatic ids."""

    name = "chat_app"
    verbose_name = "Chats"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Maintain the search index on every `migrate`, and announce agents that come and go."""
        from agents_app.models import agents  # noqa: PLC0415 the models are not loaded before
        from chat_app.members.agents import agent_presence  # noqa: PLC0415 as above
        from chat_app.search import index  # noqa: PLC0415 as above

        agents.presence_changed.connect(
            agent_presence.notify_members, dispatch_uid="chat_app.agent_presence"
        )
        post_migrate.connect(index.prepare, sender=self, dispatch_uid="search_index")
