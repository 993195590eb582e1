"""The Django application."""

from django.apps import AppConfig
from django.db.models.signals import post_migrate


class ChatAppConfig(AppConfig):
    """Its name and the kind of its automatic ids."""

    name = "chat_app"
    verbose_name = "Chats"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Keep the index of words with every `migrate`."""
        from chat_app.search import index  # noqa: PLC0415 models are there only now

        post_migrate.connect(index.prepare, sender=self, dispatch_uid="search_index")
