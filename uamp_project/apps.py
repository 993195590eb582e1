"""The composition as a Django application: it has commands and checks, and no tables."""

import gc

from django.apps import AppConfig


class ProjectConfig(AppConfig):
    """Registers the system checks, and ends the start of a process."""

    name = "uamp_project"
    verbose_name = "UAMP server"

    def ready(self) -> None:
        """Register what `manage.py check` asserts; collect garbage from now on.

        Causes of failures lose their credentials as lines of the log do.
        """
        from agents_app.runtime.failures import redact_with  # noqa: PLC0415 models are ready only now
        from uamp_project import checks  # noqa: F401, PLC0415 importing registers
        from uamp_project.redaction import redact  # noqa: PLC0415 with its caller

        redact_with(redact)

        gc.enable()
