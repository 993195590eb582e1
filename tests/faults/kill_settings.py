"""Settings of the servers and workers of the kill matrix: the product's, with tools that count."""

from tests.faults import kill_script
from uamp_project.settings import *  # noqa: F403 the product's settings, with one change

UAMP_SERVER_TOOLS = kill_script.TOOL_PATHS
