"""Work that may need too much time or memory, done in killable processes and in fair turns.

Celery workers are not here: `sessions_app.tools` claims and runs long tool calls. Markdown
rendering is in `chat_app.markdown`.
"""
