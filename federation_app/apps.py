"""The Django application."""

from django.apps import AppConfig


class FederationAppConfig(AppConfig):
    """The app's configuration."""

    name = "federation_app"
    verbose_name = "Federation"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Register the clean-up of old envelopes, and what asks agents and people of peers."""
        from django.contrib.auth.models import User  # noqa: PLC0415 as above

        from agents_app.remote.protocols import peers  # noqa: PLC0415 models are not loaded earlier
        from chat_app.log import fanout, homes  # noqa: PLC0415 as above
        from chat_app.members import inviting  # noqa: PLC0415 as above
        from chat_app.people import names  # noqa: PLC0415 as above
        from federation_app import own_names  # noqa: PLC0415 as above
        from federation_app.envelope.signatures.keys import EDDSA  # noqa: PLC0415 as above
        from federation_app.exchange import standing  # noqa: PLC0415 as above
        from federation_app.exchange.admission import forget_old  # noqa: PLC0415 as above
        from federation_app.guests import (  # noqa: PLC0415 as above
            accounts,
            delivery,
            erasures,
            fetching,
            invitations,
            outgoing,
        )
        from federation_app.peers import reading  # noqa: PLC0415 as above
        from federation_app.peers.registry import ended_credentials  # noqa: PLC0415 as above
        from federation_app.remote_agents import conversation  # noqa: PLC0415 as above
        from federation_app.terms import capabilities  # noqa: PLC0415 as above
        from sessions_app.access import keys  # noqa: PLC0415 as above
        from sessions_app.access.principal import PrincipalKind  # noqa: PLC0415 as above
        from sessions_app.data_rights import deleted_chats, erasure  # noqa: PLC0415 as above
        from sessions_app.process import periodic, retention  # noqa: PLC0415 as above
        from signing_app import owner_keys  # noqa: PLC0415 as above

        keys.also_ended(PrincipalKind.PEER.prefix, ended_credentials)
        owner_keys.overlapping(own_names.KEY_OWNER, own_names.OVERLAP)
        owner_keys.signing_with(capabilities.KEY_OWNER, EDDSA)
        retention.also_delete(forget_old)
        retention.also_delete(capabilities.forget_expired)
        retention.also_delete(owner_keys.forget_private_halves)
        retention.also_delete(fetching.forget_unshown)
        deleted_chats.followed_by(outgoing.followed_chats)
        erasure.also_note(erasures.note_erasure)
        peers.asked_by(conversation.ask)
        names.names_elsewhere(accounts.is_of_a_peer)
        username = User._meta.get_field("username")  # noqa: SLF001 documented API
        # Forms and `manage.py user` validate by it; accounts made elsewhere ask `is_taken`.
        username.validators.append(accounts.check_new_name)
        inviting.invited_by(invitations.invite_by_name)
        homes.guests_found_by(accounts.guest_users)
        fanout.also_tell(delivery.hear)
        periodic.also_run(periodic.PeriodicJob("read hubs", reading.SECONDS, reading.read_hubs))
        periodic.also_run(
            periodic.PeriodicJob("check streams", standing.SECONDS, standing.check_streams)
        )
        periodic.also_run(
            periodic.PeriodicJob("deliver to peers", delivery.SECONDS, delivery.deliver)
        )
