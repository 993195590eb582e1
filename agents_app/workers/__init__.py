"""Work that may need too much time or memory, in killable processes, in fair turns.

Celery workers are not here: `sessions_app.tools` claims and runs long tool calls. What renders
Markdown is in `chat_app.markdown`.
"""
