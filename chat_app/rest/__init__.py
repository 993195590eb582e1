"""REST of chats, messages, members and contents: views, serializers, paging and problems.

The browser's pages are in `browser`.
"""
