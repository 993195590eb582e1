"""Servers: Django's handler, and the protocols and shutdown of uvicorn and Daphne.

Routing is in `uamp_project.asgi`; the checks that precede it are in `uamp_project.edge`.
"""
