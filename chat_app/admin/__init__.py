"""Django admin of chats, their members, messages and contents."""

from chat_app.admin import chats

__all__ = ["chats"]
