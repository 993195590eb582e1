"""Webhooks: states of a response, and events of a chat, sent to an address that its client names.

`receivers` keeps the addresses for a response, `changes` finds its new states and queues them. What
is sent is a `formats` entry of the edge that offers webhooks. `chat_webhooks` keeps those of people
for their chats, `chat_changes` finds new entries of the log, and `chat_bodies` makes their bodies.
`deliveries` and `tasks` send both.
"""
