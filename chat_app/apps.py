"""The Django application."""

from django.apps import AppConfig


class ChatAppConfig(AppConfig):
    """Its name and the kind of its automatic ids."""

    name = "chat_app"
    verbose_name = "Chats"
    default_auto_field = "django.db.models.BigAutoField"
