"""Links into a chat: pages that show it to strangers, and invitations to join it.

Links end in `chat_app.members.links`; their requests are handled in `chat_app.rest`, the pages that
people open in `sessions_app.rest`.
"""
