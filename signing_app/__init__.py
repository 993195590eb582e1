"""The signing room: every key with which the server signs, and the documents that publish them.

Answers and heads of logs are signed with keys of their owners (`owner_keys`), tokens and webhooks
with those of the server (`server_keys`). What is signed is its caller's: this app knows no chats,
no agents and no money (docs/signatures.md).
"""
