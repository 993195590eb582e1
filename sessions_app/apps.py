"""The Django application."""

from django.apps import AppConfig


class SessionsAppConfig(AppConfig):
    """The app's name and the type of its automatic ids."""

    name = "sessions_app"
    verbose_name = "Sessions"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Plug this app into hooks of apps that may not import it."""
        from agents_app.admin import trial  # noqa: PLC0415 models are not loaded before
        from agents_app.remote import health, onward  # noqa: PLC0415 as above
        from chat_app.conversation import deletion  # noqa: PLC0415 as above
        from chat_app.members import membership, participants  # noqa: PLC0415 as above
        from payments_app.ledger import (  # noqa: PLC0415 as above
            balances,
            captures,
            own_money,
            transfers,
        )
        from payments_app.spending.onward import BudgetLedger  # noqa: PLC0415 as above
        from sessions_app import database  # noqa: PLC0415 as above
        from sessions_app.billing.balance_notices import notify_owners  # noqa: PLC0415 as above
        from sessions_app.billing.trial_payments import TrialPayment  # noqa: PLC0415 as above
        from sessions_app.data_rights.deleted_chats import delete_rows  # noqa: PLC0415 as above
        from sessions_app.data_rights.old_messages import erase_old  # noqa: PLC0415 as above
        from sessions_app.process import retention  # noqa: PLC0415 as above
        from sessions_app.store import responses  # noqa: PLC0415 as above
        from sessions_app.tools import delegated_calls  # noqa: PLC0415 as above
        from sessions_app.webhooks.refunds import queue_refund  # noqa: PLC0415 as above

        trial.paid_by(TrialPayment)
        health.written_by(database.run)
        onward.counted_by(BudgetLedger())
        deletion.delegations_by(delegated_calls.work_for_message)
        participants.answers_stopped_by(responses.cancel_answers)
        balances.changes_to(notify_owners)
        transfers.refunds_to(queue_refund)
        own_money.pools_known_by(membership.was_ever_in)
        captures.running_known_by(responses.is_running)
        retention.also_delete(delete_rows)
        retention.also_delete(erase_old)
