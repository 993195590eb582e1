"""The queue of a chat: messages that are sent when the answers that run have ended.

`rows` adds, claims and removes them, `reading` makes the event of the queue and what REST returns.
`turn.queued` starts them. Everything here is synchronous and opens its own transactions.
"""
