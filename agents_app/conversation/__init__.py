"""What a model is shown: the history as its messages, media as blocks, contents by their ids.

The tools `present` and `delegate` are here, because their results are part of the conversation.
A run of an agent is in `agents_app.runtime`.
"""
