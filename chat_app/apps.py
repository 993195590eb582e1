"""The Django application."""

from django.apps import AppConfig
from django.conf import settings
from django.db.models.signals import post_migrate, post_save


class ChatAppConfig(AppConfig):
    """The name of the app and the type of its automatic ids."""

    name = "chat_app"
    verbose_name = "Chats"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Maintain the search index on `migrate`, announce agents, and end links with accounts."""
        from agents_app.models import agents  # noqa: PLC0415 the models are not loaded before
        from chat_app.members import link_validity  # noqa: PLC0415 as above
        from chat_app.members.agents import agent_presence  # noqa: PLC0415 as above
        from chat_app.push import subscriptions  # noqa: PLC0415 as above
        from chat_app.search import index  # noqa: PLC0415 as above

        agents.presence_changed.connect(
            agent_presence.notify_members, dispatch_uid="chat_app.agent_presence"
        )
        post_save.connect(
            link_validity.end_with_account,
            sender=settings.AUTH_USER_MODEL,
            dispatch_uid="links_end_with_accounts",
        )
        post_save.connect(
            subscriptions.end_with_account,
            sender=settings.AUTH_USER_MODEL,
            dispatch_uid="push_subscriptions_end_with_accounts",
        )
        post_migrate.connect(index.prepare, sender=self, dispatch_uid="search_index")
