"""Tool calls as rows, and the worker that runs long ones in processes.

Which tools there are is in `agents_app.tools`; a run waits for its calls in `response.tool_broker`.
"""
