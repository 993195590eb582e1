"""Links into a chat: pages that show it to strangers, and invitations to join it.

How a link ends is in `chat_app.members.links`; requests are in `chat_app.rest`, the pages that
people open in `sessions_app.rest`.
"""
