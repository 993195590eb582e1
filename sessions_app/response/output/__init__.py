"""The output of a running response: its answer, text in frames, sound, and its listeners.

Nothing here decides what the response does next; `sessions_app.response.run` does.
"""
