"""Actions on messages that were sent: edit, delete, pin, react.

Every action is an entry that `chat_app.log` appends; the row of a message holds its current state.
"""
