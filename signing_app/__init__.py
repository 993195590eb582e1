"""Every key with which the server signs, and the documents that publish the keys.

Answers and log heads are signed with keys of their owners (`owner_keys`), tokens and webhooks with
those of the server (`server_keys`). Callers decide what is signed: this app knows no chats, no
agents and no money (docs/signatures.md).
"""
