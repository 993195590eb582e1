"""Remote agents: a row with an address, which answers as a model does, over its own protocol.

`models` calls one, `health` keeps how it does. Where requests may go: `agents_app.outbound.rules`.
"""
