"""The composition as a Django application, with commands and checks but no tables."""

import gc

from django.apps import AppConfig


class ProjectConfig(AppConfig):
    """Registers the system checks, and completes the start-up of a process."""

    name = "uamp_project"
    verbose_name = "UAMP server"

    def ready(self) -> None:
        """Register the system checks, and turn garbage collection back on.

        Also redacts credentials in the recorded causes of failures, as in log lines.
        """
        from agents_app.runtime.failures import redact_with  # noqa: PLC0415 models are ready only now
        from uamp_project import checks, deployment_checks  # noqa: F401, PLC0415 importing registers
        from uamp_project.account_security import audit  # noqa: F401, PLC0415 as above
        from uamp_project.redaction import redact  # noqa: PLC0415 with its caller

        redact_with(redact)

        gc.enable()
