"""The Django application."""

from django.apps import AppConfig


class FederationAppConfig(AppConfig):
    """The app's configuration."""

    name = "federation_app"
    verbose_name = "Federation"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Register the clean-up of old envelopes, and what asks agents and people of peers."""
        from agents_app.remote.protocols import peers  # noqa: PLC0415 models are not loaded earlier
        from chat_app.members import inviting  # noqa: PLC0415 as above
        from federation_app.asking import conversation  # noqa: PLC0415 as above
        from federation_app.exchange.admission import forget_old  # noqa: PLC0415 as above
        from federation_app.guests import (  # noqa: PLC0415 as above
            accounts,
            delivery,
            erasures,
            invitations,
        )
        from sessions_app.data_rights import erasure  # noqa: PLC0415 as above
        from sessions_app.process import periodic, retention  # noqa: PLC0415 as above

        retention.also_delete(forget_old)
        erasure.also_note(erasures.note_erasure)
        peers.asked_by(conversation.ask)
        inviting.invited_by(invitations.invite_by_name, accounts.guest_users)
        periodic.also_run(
            periodic.PeriodicJob("deliver to peers", delivery.SECONDS, delivery.deliver)
        )
