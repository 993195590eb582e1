"""The composition as a Django application: it has commands and checks, and no tables."""

from django.apps import AppConfig


class ProjectConfig(AppConfig):
    """Registers the system checks."""

    name = "uamp_project"
    verbose_name = "UAMP server"

    def ready(self) -> None:
        """Register what `manage.py check` asserts."""
        from uamp_project import checks  # noqa: F401, PLC0415 importing registers
