"""Django admin of chats, their members, messages and contents."""

from chat_app.admin import chats, contents, members, messages

__all__ = ["chats", "contents", "members", "messages"]
