"""The outermost ASGI application: limits on every request and socket before routing.

The rates of people and visitors are in `sessions_app.access`; servers are in
`uamp_project.servers`.
"""
