"""Tool calls as rows, and the worker that runs the long ones in a process of their own.

Which tools there are is in `agents_app.tools`; a run waits for its calls in `response.tool_broker`.
"""
