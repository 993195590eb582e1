"""The log of a chat: appending, reading, delivering and deleting entries, and the shared state.

Members are in `chat_app.members`; the rules of a response are in `sessions_app`. Only `fanout`
sends to groups.
"""
