"""Django admin of chats, their calls, members, messages and contents."""

from chat_app.admin import calls, chats, contents, links, members, messages

__all__ = ["calls", "chats", "contents", "links", "members", "messages"]
