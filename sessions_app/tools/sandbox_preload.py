"""Imports for the processes of tools, made once before they are forked.

The fork server of `sandbox` imports this module and nothing else does: it sets Django up.
"""

import django

django.setup()

from agents_app.tools.registry import server_tools  # noqa: E402 tools may need apps that are set up

server_tools()
