"""The composition as a Django application: it has commands and checks, and no tables."""

import gc

from django.apps import AppConfig


class ProjectConfig(AppConfig):
    """Registers the system checks, and ends the start of a process."""

    name = "uamp_project"
    verbose_name = "UAMP server"

    def ready(self) -> None:
        """Register what `manage.py check` asserts; collect garbage from now on."""
        from uamp_project import checks  # noqa: F401, PLC0415 importing registers

        gc.enable()
