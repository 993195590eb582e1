"""The conversation for a model: history as messages, media as blocks, contents by id.

The tools `present` and `delegate` are here because their results are part of the conversation.
Agent runs are in `agents_app.runtime`.
"""
