"""People and roles in the admin.

Operators cannot change their own rights, and only superusers can grant rights that they do not
have: other operators change only people and roles with no more rights than theirs. Setting a
password counts as a right, because it lets one sign in as that person.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django.contrib import admin
from django.contrib.auth.admin import GroupAdmin, UserAdmin
from django.contrib.auth.models import Group, Permission, User
from django.db.models import Q

from audit_app.admin.records import AuditedAdmin, CappedPaginator

if TYPE_CHECKING:
    from django.db.models import QuerySet
    from django.http import HttpRequest

    # Django's classes take type arguments in its stubs only.
    _UserAdmin = UserAdmin[User]
else:
    _UserAdmin = UserAdmin

RIGHTS: Final = ("is_active", "is_staff", "is_superuser", "groups", "user_permissions")


def _rights_of(user: User) -> QuerySet[Permission]:
    """Return the rights of a person, whether or not the account is active."""
    return Permission.objects.filter(Q(user=user.pk) | Q(group__user=user.pk)).distinct()


def _has_no_more(user: User, rights: QuerySet[Permission]) -> bool:
    """Return whether a person has all of these rights."""
    return not rights.exclude(pk__in=_rights_of(user).values("pk")).exists()


def may_act_as(operator: User, person: User) -> bool:
    """Return whether an operator may get a secret of a person, whose rights it gives them."""
    if operator.is_superuser or operator.pk == person.pk:
        return True
    return not person.is_superuser and _has_no_more(operator, _rights_of(person))


admin.site.unregister([User, Group])


@admin.register(User)
class PersonAdmin(AuditedAdmin, _UserAdmin):
    """People, as in Django's admin, but without counting all of them."""

    find_by = ("username",)
    show_full_result_count = False
    paginator = CappedPaginator

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> tuple[str, ...]:
        """Make an operator's own rights read-only, and superuser status for all but superusers."""
        shown = tuple(super().get_readonly_fields(request, obj))
        if obj is not None and obj.pk == request.user.pk:
            return (*shown, *RIGHTS)
        return shown if request.user.is_superuser else (*shown, "is_superuser")

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Refuse to change people with more rights."""
        return super().has_change_permission(request, obj) and self._is_below(request, obj)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Refuse to delete people with more rights, and oneself."""
        is_own = obj is not None and obj.pk == request.user.pk
        may = super().has_delete_permission(request, obj)
        return may and not is_own and self._is_below(request, obj)

    def _is_below(self, request: HttpRequest, obj: User | None) -> bool:
        user = request.user
        return obj is None or not isinstance(user, User) or may_act_as(user, obj)

    def formfield_for_manytomany(self, db_field: Any, request: Any, **kwargs: Any) -> Any:
        """Offer the roles and rights that an operator may grant."""
        user = request.user
        if not user.is_superuser and db_field.name == "groups":
            more = Permission.objects.exclude(pk__in=_rights_of(user).values("pk"))
            kwargs["queryset"] = Group.objects.exclude(permissions__in=more)
        elif not user.is_superuser and db_field.name == "user_permissions":
            kwargs["queryset"] = _rights_of(user).select_related("content_type")
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
        return not is_own and _has_no_more(user, Permission.objects.filter(group=obj))

    def formfield_for_manytomany(self, db_field: Any, request: Any = None, **kwargs: Any) -> Any:
        """Offer the rights that an operator may grant."""
        if not request.user.is_superuser:
            kwargs["queryset"] = _rights_of(request.user).select_related("content_type")
        return super().formfield_for_manytomany(db_field, request, **kwargs)
