"""A person's rights over their data: all of it as a file, and its erasure.

The rows of chats are erased in `chat_app.conversation.erasure`; the ledger keeps its rows, whose
owner has a pseudonym from then on.
"""
