"""People: their names, profiles and pictures, and their settings for the pages.

Membership of chats is in `chat_app.members`. Everything here is synchronous.
"""
