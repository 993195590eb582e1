"""The log of a chat: entries appended, read, delivered and deleted; the state that they come to.

Members are in `chat_app.members`; the rules of a response are in `sessions_app`.
Only `fanout` sends to groups.
"""
