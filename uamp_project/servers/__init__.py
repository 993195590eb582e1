"""Servers: Django's handler, and the protocols and shutdown of uvicorn and Daphne.

Routing is in `uamp_project.asgi`; checks of requests before it in `uamp_project.edge`.
"""
