"""Tool calls as rows, and the worker that runs long tools in separate processes.

`agents_app.tools` defines the tools; `response.tool_broker` waits for a run's calls.
"""
