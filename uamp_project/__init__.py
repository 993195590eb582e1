"""Composition: settings, URLs, and the ASGI and Celery applications. Nothing imports it."""

import gc

# A process imports 2,000 modules whose objects are never freed: garbage collections meanwhile find
# nothing, and take a fifth of the start-up time. `apps.ProjectConfig.ready`, the last step of
# django.setup(), turns collection back on.
gc.disable()

from uamp_project.celery import app as celery_app  # noqa: E402 after the line above

__all__ = ["celery_app"]
