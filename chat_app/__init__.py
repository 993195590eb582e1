"""Chats: their logs, messages, contents and members, their REST history and the browser chat.

Sessions and responses are in `sessions_app`, agents in `agents_app`, money in `payments_app`. Other
apps call the functions of `log`, `members`, `contents` and `conversation`; `models` is private.
"""
