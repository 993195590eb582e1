"""The paths of forgotten passwords, email addresses and second factors.

Their names are those that django-allauth redirects to.
"""

from __future__ import annotations

from allauth.account import views as account
from allauth.mfa.base import views as base
from allauth.mfa.recovery_codes import views as recovery
from allauth.mfa.totp import views as totp
from django.urls import path, re_path
from django.views.generic import RedirectView

from uamp_project.account_security import views
from uamp_project.account_security.views import account_page, by_mail, entrance

_to_security = RedirectView.as_view(pattern_name="mfa_index")

ENTRANCE = [
    path("login/code", entrance(base.AuthenticateView.as_view()), name="mfa_authenticate"),
    path("login/passkey", entrance(views.PasskeySignInView.as_view()), name="mfa_login_webauthn"),
    path(
        "password/forgotten",
        by_mail(entrance(account.PasswordResetView.as_view())),
        name="account_reset_password",
    ),
    path(
        "password/forgotten/sent",
        by_mail(entrance(account.PasswordResetDoneView.as_view())),
        name="account_reset_password_done",
    ),
    re_path(
        r"^password/new/(?P<uidb36>[0-9A-Za-z]{1,20})-(?P<key>[0-9A-Za-z-]{1,120})\Z",
        by_mail(entrance(account.PasswordResetFromKeyView.as_view(success_url="/login"))),
        name="account_reset_password_from_key",
    ),
    re_path(
        r"^account/address/confirm/(?P<key>[-:\w]{1,200})\Z",
        by_mail(entrance(account.ConfirmEmailView.as_view())),
        name="account_confirm_email",
    ),
]

OWN = [
    path(
        "account/address", by_mail(account_page(account.EmailView.as_view())), name="account_email"
    ),
    path("account/security", account_page(views.SecurityView.as_view()), name="mfa_index"),
    path("account/security/passkeys", _to_security, name="mfa_list_webauthn"),
    path(
        "account/security/confirm",
        account_page(account.ReauthenticateView.as_view()),
        name="account_reauthenticate",
    ),
    path(
        "account/security/confirm/code",
        account_page(base.ReauthenticateView.as_view()),
        name="mfa_reauthenticate",
    ),
    path(
        "account/security/confirm/passkey",
        account_page(views.ConfirmPasskeyView.as_view()),
        name="mfa_reauthenticate_webauthn",
    ),
    path(
        "account/security/app", account_page(views.NewAppView.as_view()), name="mfa_activate_totp"
    ),
    path(
        "account/security/app/remove",
        account_page(totp.DeactivateTOTPView.as_view()),
        name="mfa_deactivate_totp",
    ),
    path(
        "account/security/recovery-codes",
        account_page(recovery.ViewRecoveryCodesView.as_view()),
        name="mfa_view_recovery_codes",
    ),
    path(
        "account/security/recovery-codes/new",
        account_page(recovery.GenerateRecoveryCodesView.as_view()),
        name="mfa_generate_recovery_codes",
    ),
    path(
        "account/security/passkeys/new",
        account_page(views.NewPasskeyView.as_view()),
        name="mfa_add_webauthn",
    ),
    re_path(
        r"^account/security/passkeys/(?P<pk>[0-9]{1,18})/remove\Z",
        account_page(views.RemovePasskeyView.as_view()),
        name="mfa_remove_webauthn",
    ),
]

urlpatterns = [*ENTRANCE, *OWN]
