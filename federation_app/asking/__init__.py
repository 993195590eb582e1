"""This server as the one that asks: an agent of a peer answers here as a remote agent.

`conversation.ask` is what `agents_app` calls. `questions` signs what is sent and verifies what
comes, `answers` makes events of UAMP of the deltas, `lines` has a connection for each transport.
"""
