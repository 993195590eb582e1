"""This server as the asking side: an agent of a peer answers here as a remote agent.

`agents_app` calls `conversation.ask`. `questions` signs requests and verifies replies, `answers`
converts deltas to UAMP events, and `transports` has a connection for each transport.
"""
