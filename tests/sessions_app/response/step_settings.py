"""Settings of a server under test whose agents take more than one step: a short tool to count."""

from uamp_project.settings import *  # noqa: F403 the product's settings, with one change

UAMP_SERVER_TOOLS = ["tests.sessions_app.response.step_tools.note"]
