"""REST: the caller, their profile, picture and settings, and people they can add to a chat."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from django.conf import settings
from django.contrib.auth.models import User
from django.http import Http404, HttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework.parsers import MultiPartParser
from rest_framework.response import Response
from rest_framework.serializers import ValidationError

from agents_app.rest.problems import Problem, responses
from agents_app.rest.rights import ANY
from agents_app.rest.views import JsonView, caller
from chat_app.members.presence import notify_of_profile
from chat_app.people import profiles
from chat_app.people import settings as person_settings
from chat_app.people.pictures import PICTURE_MIME, InvalidPicture
from chat_app.people.profiles import InvalidProfile, ProfileChange, profile_data
from chat_app.people.settings import InvalidSettings, SettingsChange, settings_data
from chat_app.rest.edge import RestView
from chat_app.rest.members.person_serializers import (
    MeSerializer,
    PersonSerializer,
    ProfileChangeSerializer,
    SettingsChangeSerializer,
    SettingsSerializer,
)
from chat_app.rest.paging import list_of, list_response, read_query
from chat_app.rest.serializers import NoQuery, PeopleQuery, UploadSerializer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rest_framework.request import Request

PEOPLE_MAX: Final = 50
# The lines around the file in a multipart body.
_MULTIPART_BYTES: Final = 64 * 1024
_DIGITS: Final = 18


@contextmanager
def _refused() -> Iterator[None]:
    """Convert an invalid field to a 400, an invalid picture to a 422."""
    try:
        yield
    except (InvalidProfile, InvalidSettings) as error:
        raise ValidationError({error.field: str(error)}) from error
    except InvalidPicture as error:
        raise Problem(
            "invalid_media", str(error), errors=[{"pointer": "/file", "detail": str(error)}]
        ) from error


def person_data(user: User) -> dict[str, Any]:
    """Return a person as described by PersonSerializer; needs `profile` selected."""
    return {"id": str(user.pk), "username": user.get_username(), **profile_data(user)}


def _caller(request: Request) -> User:
    return User.objects.select_related("profile").get(pk=caller(request).pk)


def _changed(request: Request) -> Response:
    """Tell the members of the caller's chats, and return the caller as they are now."""
    user = _caller(request)
    notify_of_profile(user)
    return Response(person_data(user))


class MeView(RestView):
    """The caller."""

    read_scope = "account:read"
    write_scope = "account:write"
    takes_restricted_keys = True

    @extend_schema(operation_id="get_me", responses={200: MeSerializer, **responses(400)})
    def get(self, request: Request) -> Response:
        """Return the caller."""
        read_query(request, NoQuery)
        return Response(person_data(_caller(request)))

    @extend_schema(
        operation_id="update_me",
        request=ProfileChangeSerializer,
        responses={200: MeSerializer, **responses(400, 403, 413, 415)},
    )
    def patch(self, request: Request) -> Response:
        """Change the caller's public profile."""
        body = ProfileChangeSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        with _refused():
            profiles.update_profile(
                user=caller(request), change=ProfileChange(**body.validated_data)
            )
        return _changed(request)


class SettingsView(RestView):
    """The caller's settings for the pages."""

    read_scope = "account:read"
    write_scope = "account:write"
    takes_restricted_keys = True

    @extend_schema(
        operation_id="get_settings", responses={200: SettingsSerializer, **responses(400)}
    )
    def get(self, request: Request) -> Response:
        """Return the settings."""
        read_query(request, NoQuery)
        return Response(settings_data(person_settings.settings_of(caller(request).pk)))

    @extend_schema(
        operation_id="update_settings",
        request=SettingsChangeSerializer,
        responses={200: SettingsSerializer, **responses(400, 403, 413, 415)},
    )
    def patch(self, request: Request) -> Response:
        """Change the named settings; the others stay as they are."""
        body = SettingsChangeSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        with _refused():
            row = person_settings.update_settings(
                user_id=caller(request).pk, change=SettingsChange(**body.validated_data)
            )
        return Response(settings_data(row))


class OwnPictureView(RestView):
    """The caller's picture."""

    write_scope = "account:write"
    takes_restricted_keys = True

    parser_classes = (MultiPartParser,)
    throttle_scope = "pictures"

    @extend_schema(
        operation_id="set_picture",
        request={"multipart/form-data": UploadSerializer},
        responses={200: MeSerializer, **responses(400, 403, 413, 415, 422)},
    )
    def put(self, request: Request) -> Response:
        """Crop an uploaded picture to its middle and make it the caller's."""
        limit = settings.UAMP_PICTURE_BYTES
        length = request.headers.get("Content-Length", "")
        too_large = Problem("content_too_large", f"A picture may have at most {limit} bytes.")
        if length.isdecimal() and int(length[:_DIGITS]) > limit + _MULTIPART_BYTES:
            raise too_large
        body = UploadSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        upload = body.validated_data["file"]
        if upload.size > limit:
            raise too_large
        with _refused():
            profiles.set_picture(user_id=caller(request).pk, data=upload.read())
        return _changed(request)

    @extend_schema(
        operation_id="remove_picture", request=None, responses={200: MeSerializer, **responses(403)}
    )
    def delete(self, request: Request) -> Response:
        """Remove the picture."""
        profiles.remove_picture(user_id=caller(request).pk)
        return _changed(request)


class PictureView(JsonView):
    """The picture of a person, for everyone who is signed in."""

    read_scope = ANY
    takes_restricted_keys = True

    @extend_schema(
        operation_id="get_picture",
        responses={(200, PICTURE_MIME): OpenApiTypes.BINARY, **responses(404)},
    )
    def get(self, request: Request, user_id: int, version: str) -> HttpResponse:
        """Return the picture; a new picture gets a new address."""
        del request
        data = profiles.picture_of(user_id, version)
        if data is None:
            raise Http404
        headers = {
            "X-Content-Type-Options": "nosniff",
            "Content-Security-Policy": "sandbox; default-src 'none'",
            "Cache-Control": "private, max-age=31536000, immutable",
        }
        return HttpResponse(data, content_type=PICTURE_MIME, headers=headers)


class UsersView(RestView):
    """The people that the caller can add to a chat."""

    read_scope = "account:read"
    takes_restricted_keys = True

    @extend_schema(
        operation_id="list_users",
        parameters=[PeopleQuery],
        responses={200: list_of(PersonSerializer), **responses(400)},
    )
    def get(self, request: Request) -> Response:
        """Return the first people, by username, whose username or name starts with `q`."""
        query = read_query(request, PeopleQuery)
        people = (
            User.objects.filter(profiles.people_named(query["q"]), is_active=True)
            .exclude(pk=caller(request).pk)
            .select_related("profile")
            .order_by("username")[:PEOPLE_MAX]
        )
        return list_response(request, [person_data(user) for user in people], next_cursor=None)
