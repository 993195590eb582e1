"""The output of a running response: answer, text frames, sound and listeners.

Decisions about the response are made in `sessions_app.response.run`, not here.
"""
