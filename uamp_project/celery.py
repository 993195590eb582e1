"""The Celery application: a doorbell for work whose truth is in rows (DESIGN D6)."""

import os

from celery import Celery

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "uamp_project.settings")

app = Celery("uamp_project")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()
