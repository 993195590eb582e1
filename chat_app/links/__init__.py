"""Links into a chat: pages that show it to strangers, and invitations to join it.

How long a link lives and when it ends is in `chat_app.members.link_validity`, because membership
ends links; requests are handled in `chat_app.rest`, the pages that people open in
`sessions_app.rest`.
"""
