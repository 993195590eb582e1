"""The outermost ASGI application: limits that hold for every request and socket before routing.

Rates of people and visitors are in `sessions_app.access`; servers are in `uamp_project.servers`.
"""
