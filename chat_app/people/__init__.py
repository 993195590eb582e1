"""People themselves: their names, profiles and pictures, and their settings for the pages.

Who is in which chat is in `chat_app.members`. Everything here is synchronous.
"""
