"""Imports for tool processes, made once before they are forked.

Imported only by `sandbox`'s fork server; sets up Django.
"""

import django

django.setup()

from agents_app.tools.registry import server_tools  # noqa: E402 tools may need the apps to be set up

server_tools()
