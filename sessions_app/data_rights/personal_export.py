"""Export of everything that the server has on a person, as a ZIP file. Synchronous.

`person.json` has the account, profile, settings, keys without their secrets, sessions and chats;
`chats/<id>.ndjson` the export of each chat that the person is in; `written.ndjson` all messages
that they wrote; `statement.csv` their account in the ledger; `files/` their stored files.
"""

from __future__ import annotations

import shutil
import zipfile
from typing import IO, TYPE_CHECKING, Any

import msgspec
from allauth.account.models import EmailAddress
from allauth.mfa.models import Authenticator

from chat_app.export import personal
from payments_app.ledger.accounts import account_of_user
from payments_app.reporting.statement_csv import statement_pages
from sessions_app.models import ApiKey, Session
from sessions_app.rest.chats.failures import failures_of
from sessions_app.rest.chats.receipts import receipts_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from django.contrib.auth.models import User


def export_person(user: User, to: IO[bytes]) -> int:
    """Write the file and return its number of members. Chats and files are streamed."""
    with zipfile.ZipFile(to, "w", zipfile.ZIP_DEFLATED, strict_timestamps=False) as archive:
        about = msgspec.json.format(msgspec.json.encode(_about(user)))
        archive.writestr("person.json", about)
        for name, lines in personal.chats(user, _receipts, failures_of):
            _write(archive, name, lines)
        _write(archive, "written.ndjson", personal.message_lines(user))
        statement = statement_pages(account_of_user(user.pk).id)
        _write(archive, "statement.csv", (page.encode() for page in statement))
        for name, file in personal.stored_files(user):
            with file, archive.open(name, "w", force_zip64=True) as member:
                shutil.copyfileobj(file, member)
        return len(archive.namelist())


def _write(archive: zipfile.ZipFile, name: str, pieces: Iterable[bytes]) -> None:
    with archive.open(name, "w", force_zip64=True) as member:
        for piece in pieces:
            member.write(piece)


def _about(user: User) -> dict[str, Any]:
    keys = ApiKey.objects.filter(user=user).order_by("created_at")
    sessions = Session.objects.filter(user=user).order_by("created_at")
    return {
        "account": {
            "id": user.pk,
            "username": user.username,
            "email": user.email,
            "first_name": user.first_name,
            "last_name": user.last_name,
            "date_joined": user.date_joined,
            "last_login": user.last_login,
            "email_addresses": list(
                EmailAddress.objects.filter(user=user).values("email", "verified")
            ),
            "second_factors": list(
                Authenticator.objects.filter(user=user).values("type", "created_at", "last_used_at")
            ),
            "groups": list(user.groups.values_list("name", flat=True)),
        },
        **personal.about(user),
        "api_keys": list(
            keys.values("name", "prefix", "created_at", "expires_at", "revoked_at", "used_at")
        ),
        "sessions": list(
            sessions.values("id", "chat_id", "transport", "status", "created_at", "seen_at")
        ),
    }


def _receipts(
    chat_id: str, user_id: int, response_ids: Collection[str]
) -> dict[str, dict[str, Any]]:
    receipts = receipts_of(chat_id, user_id, response_ids=response_ids)
    return {receipt.pop("response_id"): receipt for receipt in receipts}
