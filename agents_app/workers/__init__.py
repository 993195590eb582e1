"""Work that may need too much time or memory, done in killable processes and in fair turns.

`completion` sees work to its end, even if its caller is cancelled.
Celery workers are not here: `sessions_app.tools` claims and runs long tool calls. Markdown
rendering is in `chat_app.markdown`.
"""
