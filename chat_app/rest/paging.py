"""Pages of REST lists: by key, never by offset or count, so every page costs the same.

A list is ordered by something unique (`seq` in a chat; a time and the id elsewhere), and a cursor
is signed for one path with one set of filters.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import TYPE_CHECKING, Any, Final, Generic, Protocol, TypeVar

from django.core import signing
from django.db.models import Q
from drf_spectacular.utils import inline_serializer
from rest_framework import serializers
from rest_framework.response import Response

from agents_app.rest.error_details import flatten
from agents_app.rest.problems import Problem
from agents_app.rest.strict import name_choices

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from django.db.models import Model, QuerySet
    from rest_framework.request import Request

LIMIT_DEFAULT: Final = 50
LIMIT_MAX: Final = 200
SEQ_MAX: Final = 2**53 - 1
PAGE_CHARS: Final = 4 * 1024 * 1024
"""A page ends early, with a cursor, when its rows have this much text."""
WINDOW: Final = 20_000
"""How many places of a log one page scans for rows that match filters."""
_SALT: Final = "rest.cursor"
# These select a place in a list; all other parameters select the list.
_PLACE: Final = {"cursor", "limit"}


class HasSeq(Protocol):
    """A row with a place in a chat's log."""

    seq: int


Row = TypeVar("Row")
SeqRow = TypeVar("SeqRow", bound=HasSeq)
ModelRow = TypeVar("ModelRow", bound="Model")


@dataclass(frozen=True, kw_only=True)
class Page(Generic[Row]):
    """One page of rows, and the cursor of the next page, if any."""

    rows: list[Row]
    next_cursor: str | None = None


class ListQuery(serializers.Serializer[Any]):
    """The query parameters of every list."""

    limit = serializers.IntegerField(
        min_value=1, max_value=LIMIT_MAX, default=LIMIT_DEFAULT, help_text="Rows per page."
    )
    cursor = serializers.CharField(
        required=False, help_text="The `next_cursor` of the previous page, unchanged."
    )


class SeqQuery(ListQuery):
    """The query parameters of lists in log order."""

    before = serializers.IntegerField(
        min_value=0, max_value=SEQ_MAX, required=False, help_text="Only rows with a smaller `seq`."
    )
    after = serializers.IntegerField(
        min_value=0, max_value=SEQ_MAX, required=False, help_text="Only rows with a larger `seq`."
    )
    order = serializers.ChoiceField(choices=["asc", "desc"], default="asc")


def read_query(request: Request, query: type[serializers.Serializer[Any]]) -> dict[str, Any]:
    """Return the validated query parameters of a request.

    Raises Problem: unknown_parameter for names that the route does not know, invalid for values.
    """
    serializer = query(data=request.query_params)
    name_choices(serializer)
    if unknown := sorted(set(request.query_params) - set(serializer.fields)):
        raise Problem(
            "unknown_parameter",
            f"Supported parameters: {', '.join(serializer.fields) or 'none'}.",
            errors=[{"parameter": name, "detail": "Unknown."} for name in unknown],
        )
    repeated = [
        {"parameter": name, "detail": "Send it only once."}
        for name, values in request.query_params.lists()
        if len(values) > 1 and not isinstance(serializer.fields[name], serializers.ListField)
    ]
    if repeated or not serializer.is_valid():
        errors = repeated or [
            {"parameter": pointer.lstrip("/"), "detail": detail}
            for pointer, detail in flatten(serializer.errors)
        ]
        raise _wrong_query(errors)
    checked: dict[str, Any] = serializer.validated_data
    return checked


def wrong_parameter(name: str, detail: str) -> Problem:
    """Return the refusal of a query parameter whose value only the view can judge."""
    return _wrong_query([{"parameter": name, "detail": detail}])


def _wrong_query(errors: Sequence[Mapping[str, str]]) -> Problem:
    return Problem("invalid", "A query parameter has an invalid value; see errors.", errors=errors)


def seq_page(rows: QuerySet[Any], request: Request, query: dict[str, Any]) -> Page[Any]:
    """Return a page of rows that have a `seq`; raises Problem for a bad cursor."""
    if (before := query.get("before")) is not None:
        rows = rows.filter(seq__lt=before)
    if (after := query.get("after")) is not None:
        rows = rows.filter(seq__gt=after)
    falling = query["order"] == "desc"
    if cursor := query.get("cursor"):
        place = _integer(_read_cursor(request, cursor))
        rows = rows.filter(seq__lt=place) if falling else rows.filter(seq__gt=place)
    elif (around := query.get("around")) is not None:
        return _page_around(rows, request, query, around)
    page_rows = list(rows.order_by("-seq" if falling else "seq")[: query["limit"] + 1])
    return cut(page_rows, request, query["limit"], lambda row: str(row.seq))


def window_page(
    rows: QuerySet[Any], request: Request, query: dict[str, Any], *, last: int
) -> Page[Any]:
    """Return a page of rows that match filters, of which the log may have few.

    It scans WINDOW places of a log whose head is `last`; if there are more, a page has a cursor
    even with few rows or none. Raises Problem for a bad cursor.
    """
    falling = query["order"] == "desc"
    above = min(query.get("before", last + 1), last + 1)
    below = query.get("after", -1)
    if cursor := query.get("cursor"):
        place = _integer(_read_cursor(request, cursor))
        above, below = (min(above, place), below) if falling else (above, max(below, place))
    first, end = (
        (max(below, above - 1 - WINDOW), above)
        if falling
        else (below, min(above, below + WINDOW + 1))
    )
    page_rows = list(
        rows.filter(seq__gt=first, seq__lt=end).order_by("-seq" if falling else "seq")[
            : query["limit"] + 1
        ]
    )
    page = cut(page_rows, request, query["limit"], lambda row: str(row.seq))
    if page.next_cursor is None and (first > below if falling else end < above):
        place = first + 1 if falling else end - 1
        return Page(rows=page.rows, next_cursor=make_cursor(request, str(place)))
    return page


def search_page(
    request: Request, query: dict[str, Any], find: Callable[[Q, int], list[Any]]
) -> Page[Any]:
    """Return a page of at most that many results of `find` within bounds of `seq`, newest first.

    Raises Problem for a bad cursor.
    """
    bounds = Q()
    if "before" in query:
        bounds &= Q(seq__lt=query["before"])
    if "after" in query:
        bounds &= Q(seq__gt=query["after"])
    if cursor := query.get("cursor"):
        bounds &= Q(seq__lt=_integer(_read_cursor(request, cursor)))
    page_rows = find(bounds, query["limit"] + 1)
    return cut(page_rows, request, query["limit"], lambda row: str(row.seq))


def _page_around(
    rows: QuerySet[Any], request: Request, query: dict[str, Any], around: int
) -> Page[Any]:
    """Return the rows on both sides of a place; the cursor continues in the requested order."""
    limit = query["limit"]
    older = list(rows.filter(seq__lte=around).order_by("-seq")[: limit + 1])
    newer = list(rows.filter(seq__gt=around).order_by("seq")[: limit + 1])
    # A short side leaves its share to the other one.
    share = max(limit - limit // 2, limit - len(newer))
    kept_older = _fitting(older[:share], PAGE_CHARS // 2)
    kept_newer = _fitting(newer[: limit - len(kept_older)], PAGE_CHARS // 2)
    if query["order"] == "desc":
        window, more = kept_newer[::-1] + kept_older, len(older) > len(kept_older)
    else:
        window, more = kept_older[::-1] + kept_newer, len(newer) > len(kept_newer)
    cursor = make_cursor(request, str(window[-1].seq)) if more and window else None
    return Page(rows=window, next_cursor=cursor)


def time_page(
    rows: QuerySet[ModelRow], request: Request, query: dict[str, Any], *, field: str
) -> Page[ModelRow]:
    """Return a page of rows by a time field and id, newest first.

    Raises Problem for a bad cursor.
    """
    if cursor := query.get("cursor"):
        at, _, pk = _read_cursor(request, cursor).partition("|")
        try:
            time = datetime.fromisoformat(at)
        except ValueError as error:
            raise _wrong_cursor() from error
        rows = rows.filter(Q(**{f"{field}__lt": time}) | Q(**{field: time, "pk__lt": pk}))
    page_rows = list(rows.order_by(f"-{field}", "-pk")[: query["limit"] + 1])
    return cut(
        page_rows,
        request,
        query["limit"],
        lambda row: f"{getattr(row, field).isoformat()}|{row.pk}",
    )


def id_page(
    rows: QuerySet[ModelRow],
    request: Request,
    query: dict[str, Any],
    *,
    falling: bool = False,
    field: str = "pk",
) -> Page[ModelRow]:
    """Return a page of rows by an integer field, oldest first; raises Problem for a bad cursor.

    The field is the id, or another one that is unique among these rows.
    """
    if cursor := query.get("cursor"):
        place = _integer(_read_cursor(request, cursor))
        rows = rows.filter(**{f"{field}__{'lt' if falling else 'gt'}": place})
    page_rows = list(rows.order_by(f"{'-' if falling else ''}{field}")[: query["limit"] + 1])
    return cut(page_rows, request, query["limit"], lambda row: str(getattr(row, field)))


def cut(rows: list[Row], request: Request, limit: int, place: Callable[[Row], str]) -> Page[Row]:
    """Return the first `limit` rows, or as many as PAGE_CHARS allows.

    One more row indicates that there is a next page.
    """
    kept = _fitting(rows[:limit], PAGE_CHARS)
    if len(rows) == len(kept):
        return Page(rows=rows)
    return Page(rows=kept, next_cursor=make_cursor(request, place(kept[-1])))


def _fitting(rows: list[Row], chars: int) -> list[Row]:
    """Return the first rows with at most that much text in all, and one at least."""
    total = 0
    for number, row in enumerate(rows):
        total += sum(map(_chars, getattr(row, "__dict__", {}).values()))
        if total > chars:
            return rows[: max(number, 1)]
    return rows


def _chars(value: object) -> int:
    """Return how much text a field of a row has."""
    if isinstance(value, str):
        return len(value)
    if isinstance(value, dict):
        return sum(map(_chars, value.values()))
    return sum(map(_chars, value)) if isinstance(value, list) else 0


def list_response(
    request: Request, data: Sequence[dict[str, Any]], *, next_cursor: str | None, key: str = "id"
) -> Response:
    """Return a list's body, with a Link header to its next page (RFC 8288)."""
    response = Response(
        {
            "object": "list",
            "data": data,
            "has_more": next_cursor is not None,
            "first_id": str(data[0][key]) if data else None,
            "last_id": str(data[-1][key]) if data else None,
            "next_cursor": next_cursor,
        }
    )
    if next_cursor is not None:
        parameters = request.query_params.copy()
        parameters["cursor"] = next_cursor
        response["Link"] = f'<{request.path}?{parameters.urlencode()}>; rel="next"'
    return response


@cache
def list_of(item: type[serializers.Serializer[Any]]) -> serializers.Serializer[Any]:
    """Return the OpenAPI schema of a list of such items."""
    shape: serializers.Serializer[Any] = inline_serializer(
        f"{item.__name__.removesuffix('Serializer')}List",
        {
            "object": serializers.CharField(default="list"),
            "data": item(many=True),
            "has_more": serializers.BooleanField(),
            "first_id": serializers.CharField(allow_null=True),
            "last_id": serializers.CharField(allow_null=True),
            "next_cursor": serializers.CharField(allow_null=True),
        },
    )
    return shape


def _list_of(request: Request) -> str:
    """Return a short digest of the list that a request selects: its path and filters."""
    filters = sorted((k, v) for k, v in request.query_params.items() if k not in _PLACE)
    return hashlib.sha256(repr((request.path, filters)).encode()).hexdigest()[:16]


def make_cursor(request: Request, place: str) -> str:
    """Return the cursor of a place in the list that a request selects."""
    return signing.dumps([_list_of(request), place], salt=_SALT)


def _read_cursor(request: Request, cursor: str) -> str:
    try:
        listed, place = signing.loads(cursor, salt=_SALT)
    except signing.BadSignature as error:
        raise _wrong_cursor() from error
    if listed != _list_of(request):
        raise _wrong_cursor()
    return str(place)


def place_before(request: Request, query: dict[str, Any], read: Callable[[str], Row]) -> Row | None:
    """Return the place in a list's cursor, if there is one; raises Problem for a bad cursor."""
    if not (cursor := query.get("cursor")):
        return None
    try:
        return read(_read_cursor(request, cursor))
    except ValueError as error:
        raise _wrong_cursor() from error


def _integer(place: str) -> int:
    try:
        return int(place)
    except ValueError as error:
        raise _wrong_cursor() from error


def _wrong_cursor() -> Problem:
    return Problem(
        "invalid_cursor",
        "Send next_cursor unchanged, with the same path and filters.",
        errors=[{"parameter": "cursor", "detail": "Not a cursor of this list."}],
    )
