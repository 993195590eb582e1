"""Webhooks: states of a response, and events of a chat, sent to an address set by the client.

For responses, `receivers` stores the addresses, and `response_changes` detects and queues new
states; the edge that offers webhooks defines the body in `formats`. For people's chats,
`chat_webhooks` stores the webhooks and lists the events that one may subscribe to (`TYPES`),
`chat_changes` detects new log entries, and `chat_bodies` builds the bodies. `deliveries` and
`tasks` send both.
"""
