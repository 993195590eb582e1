"""A person's rights over their data: exporting all of it, and erasing it.

`chat_app.conversation.erasure` erases the rows of chats. The ledger keeps its rows under a
pseudonym.
"""
