"""Composition: settings, URLs, the ASGI and Celery applications. Nothing imports it."""

from uamp_project.celery import app as celery_app

__all__ = ["celery_app"]
