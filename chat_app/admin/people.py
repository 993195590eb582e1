"""People and roles in the admin.

Operators cannot change their own rights, and only superusers can grant rights that they do not
have: other operators change only people and roles with no more rights than theirs. A password lets
one sign in as that person, so only operators who may act as them set it, or change what identifies
them when they sign in.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django.contrib import admin
from django.contrib.admin.utils import unquote
from django.contrib.auth.admin import GroupAdmin, UserAdmin
from django.contrib.auth.models import Group, Permission, User
from django.core.exceptions import PermissionDenied

from audit_app.admin.column_search import ColumnSearch
from audit_app.admin.records import AuditedAdmin, CappedPaginator
from audit_app.authority import has_all, may_act_as, may_change, rights_of

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse

    # Django's classes take type arguments in its stubs only.
    _UserAdmin = UserAdmin[User]
else:
    _UserAdmin = UserAdmin

RIGHTS: Final = ("is_active", "is_staff", "is_superuser", "groups", "user_permissions")
SIGN_IN: Final = ("username", "email", "last_login")
"""Fields that people sign in with, and `last_login`, which ends their reset links."""


admin.site.unregister([User, Group])


@admin.register(User)
class PersonAdmin(ColumnSearch, AuditedAdmin, _UserAdmin):
    """People, as in Django's admin, but without counting and searching all of them."""

    search_fields = ("username__startswith", "email__exact")
    search_help_text = "The beginning of a username, or a complete email address."
    find_by = ("username", "email")
    show_full_result_count = False
    paginator = CappedPaginator

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> tuple[str, ...]:
        """Make read-only what an operator may not change.

        Those are their own rights, superuser status for all but superusers, and what signs a person
        in for those who may not act as them.
        """
        fields = tuple(super().get_readonly_fields(request, obj))
        operator: Any = request.user
        if obj is not None and not may_act_as(operator, obj):
            fields = (*fields, *SIGN_IN)
        if obj is not None and obj.pk == request.user.pk:
            return (*fields, *RIGHTS)
        return fields if request.user.is_superuser else (*fields, "is_superuser")

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Refuse to change people with more rights."""
        return super().has_change_permission(request, obj) and self._is_below(request, obj)

    def user_change_password(
        self,
        request: HttpRequest,
        id: str,  # noqa: A002 part of the interface
        form_url: str = "",
    ) -> HttpResponse:
        """Refuse a password to operators who may not act as the person."""
        operator: Any = request.user
        person = self.get_object(request, unquote(id))
        if person is not None and not may_act_as(operator, person):
            raise PermissionDenied
        return super().user_change_password(request, id, form_url)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Refuse to delete people with more rights, and oneself."""
        is_own = obj is not None and obj.pk == request.user.pk
        may = super().has_delete_permission(request, obj)
        return may and not is_own and self._is_below(request, obj)

    def _is_below(self, request: HttpRequest, obj: User | None) -> bool:
        user = request.user
        return obj is None or not isinstance(user, User) or may_change(user, obj)

    def formfield_for_manytomany(self, db_field: Any, request: Any, **kwargs: Any) -> Any:
        """Offer the roles and rights that an operator may grant."""
        user = request.user
        if not user.is_superuser and db_field.name == "groups":
            more = Permission.objects.exclude(pk__in=rights_of(user).values("pk"))
            kwargs["queryset"] = Group.objects.exclude(permissions__in=more)
        elif not user.is_superuser and db_field.name == "user_permissions":
            kwargs["queryset"] = rights_of(user).select_related("content_type")
        return super().formfield_for_manytomany(db_field, request, **kwargs)


@admin.register(Group)
class RoleAdmin(AuditedAdmin, GroupAdmin):
    """Groups: each is a role with rights for its people (docs/admin.md)."""

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Refuse to change one's own role, or one with more rights."""
        return super().has_change_permission(request, obj) and self._is_below(request, obj)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Refuse to delete one's own role, or one with more rights."""
        return super().has_delete_permission(request, obj) and self._is_below(request, obj)

    def _is_below(self, request: HttpRequest, obj: Group | None) -> bool:
        user = request.user
        if obj is None or not isinstance(user, User) or user.is_superuser:
            return True
        is_own = user.groups.filter(pk=obj.pk).exists()
        return not is_own and has_all(user, Permission.objects.filter(group=obj))

    def formfield_for_manytomany(self, db_field: Any, request: Any = None, **kwargs: Any) -> Any:
        """Offer the rights that an operator may grant."""
        if not request.user.is_superuser:
            kwargs["queryset"] = rights_of(request.user).select_related("content_type")
        return super().formfield_for_manytomany(db_field, request, **kwargs)
