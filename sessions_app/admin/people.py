"""Operators' actions for a person: export their data, erase them, and find their traces."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django import forms
from django.contrib import admin
from django.contrib.auth.models import User

from audit_app.admin.columns import list_buttons
from audit_app.admin.operations import Operation, OperationRefused, OperationsAdmin, ReasonForm
from audit_app.record import AuditAction
from chat_app.admin.people import PersonAdmin
from sessions_app.data_rights.erasure import PREFIX, StillRunning, erase_person
from sessions_app.data_rights.self_service import PersonalExport, export_response

if TYPE_CHECKING:
    from django.db.models import Model
    from django.http import HttpRequest
    from django.http.response import HttpResponseBase

ERASE_SECONDS: Final = 5.0
"""How long a request waits for the person's answers to end."""


class EraseForm(ReasonForm):
    """The name of the person, typed, because an erasure cannot be undone."""

    username = forms.CharField(
        max_length=150,
        help_text="Type the username of this person to confirm. This cannot be undone.",
    )
    field_order = ("username", "reason")


def _export(person: User, options: dict[str, Any], request: HttpRequest) -> str:
    del request
    export = PersonalExport(person.pk)
    if not export.begin():
        raise OperationRefused("An export of this person is running. Try again in a minute.")
    options["export"] = export
    return f"the data of {person}"


def _erase(person: User, options: dict[str, Any], request: HttpRequest) -> str:
    if options["username"] != person.username:
        raise OperationRefused("That is not the username of this person. Nothing was erased.")
    operator = request.user
    if person.pk == operator.pk or not isinstance(operator, User):
        raise OperationRefused("You cannot erase your own account. Ask another operator.")
    try:
        done = erase_person(person, reason=options["reason"], by=operator, wait=ERASE_SECONDS)
    except StillRunning as error:
        raise OperationRefused(
            "The account is closed, but some of its answers are still running."
            " Try again in a minute."
        ) from error
    return (
        f"the account is now {done.pseudonym}; deleted {done.chats_deleted} chats,"
        f" {done.messages} messages in other chats and {done.files} files"
    )


EXPORT_PERSON: Final = Operation(
    name="export",
    label="Export data",
    right="chat_app.export_content",
    act=AuditAction.PERSON_EXPORTED,
    run=_export,
    facts=lambda person: (
        f"A ZIP file with everything that this server has on {person}: account, chats, messages,"
        " payments and files."
    ),
    is_available=lambda person: not person.username.startswith(PREFIX),
)
ERASE_PERSON: Final = Operation(
    name="erase",
    label="Erase",
    right="auth.delete_user",
    act=None,
    run=_erase,
    facts=lambda person: (
        f"Closes the account of {person}, deletes the chats that only they were in, their messages"
        " in other chats, their files, keys and sessions, and replaces their name with a pseudonym."
        " What others wrote stays, and so do the ledger and the audit log."
    ),
    is_available=lambda person: not person.username.startswith(PREFIX),
    form=EraseForm,
    is_atomic=False,
)

admin.site.unregister(User)


@admin.register(User)
class OperatedPersonAdmin(OperationsAdmin, PersonAdmin):
    """People, with their traces and the actions of operators for them."""

    operations = (EXPORT_PERSON, ERASE_PERSON)

    def _run(
        self, request: HttpRequest, operation: Operation, row: Model, data: dict[str, Any]
    ) -> str:
        """Run an operation; an export that could not be recorded leaves room for another."""
        try:
            return super()._run(request, operation, row, data)
        except BaseException:
            if "export" in data:
                data["export"].end()
            raise

    def may_operate(self, request: HttpRequest, operation: Operation, row: Any) -> bool:
        """Refuse to erase oneself, and people with more rights."""
        may = super().may_operate(request, operation, row)
        return may and (operation is not ERASE_PERSON or self.has_delete_permission(request, row))

    def row_links(self, request: HttpRequest, row: Any) -> list[dict[str, str]]:
        """Return links to their answers, sessions, chats, keys, account and files."""
        query = {"q": row.username}
        return list_buttons(
            request,
            ("sessions_app.response", "Answers", query),
            ("sessions_app.session", "Sessions", query),
            ("chat_app.participant", "Chats", query),
            ("sessions_app.apikey", "Keys", query),
            ("payments_app.account", "Account", query),
            ("chat_app.content", "Files", query),
        )

    def finish_operation(
        self,
        request: HttpRequest,
        operation: Operation,
        row: Any,
        data: dict[str, Any],
        done: str,
    ) -> HttpResponseBase:
        """Send the file of an export."""
        if "export" not in data:
            return super().finish_operation(request, operation, row, data, done)
        return export_response(row, data["export"])
