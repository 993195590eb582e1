"""Settings of servers and workers under test whose agents work together: long tools to count."""

from uamp_project.settings import *  # noqa: F403 the product's settings, with one change
from uamp_project.settings import UAMP_SERVER_TOOLS as PRODUCT_TOOLS

UAMP_SERVER_TOOLS = [
    *PRODUCT_TOOLS,
    "tests.sessions_app.turn.team_tools.STEPS",
    "tests.sessions_app.turn.team_tools.GATED",
    "tests.sessions_app.turn.team_tools.REFUSE",
    "tests.sessions_app.turn.team_tools.REPEAT",
]
