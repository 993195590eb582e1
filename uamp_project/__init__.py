"""Composition: settings, URLs, the ASGI and Celery applications. Nothing imports it."""

import gc

# A process imports 2,000 modules, whose objects stay: collections in between find nothing and are
# a fifth of its start. `apps.ProjectConfig.ready`, the last step of django.setup(), ends this.
gc.disable()

from uamp_project.celery import app as celery_app  # noqa: E402 as the line above says

__all__ = ["celery_app"]
