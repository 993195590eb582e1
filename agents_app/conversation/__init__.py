"""The conversation for a model: the history as messages, media as blocks, contents by id.

The tools `present` and `delegate` are here, because their results are part of the conversation.
A run of an agent is in `agents_app.runtime`.
"""
