"""Chats: their logs, messages, contents and members; REST history and the browser chat."""
