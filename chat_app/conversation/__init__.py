"""Acts on messages that were sent: edit, delete, pin, react.

Every act is an entry that `chat_app.log` appends; the row of a message has what it is now.
"""
