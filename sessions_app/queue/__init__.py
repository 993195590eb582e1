"""A chat's queue of messages to send once the running answers have ended.

`rows` adds, claims and removes them. `reading` builds the queue's event and REST representation.
`turn.queued_turns` starts them. Everything here is synchronous and opens its own transactions.
"""
