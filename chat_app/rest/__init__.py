"""REST of chats, messages, members and contents: views, their shapes, pages and problems.

The browser's pages are in `browser`.
"""
