"""The URL paths of the server: the URL lists of its apps.

`/healthz` and `/readyz` are answered earlier, by `health.probe_middleware`.
"""

from django.contrib import admin
from django.urls import include, path, re_path
from django.views.generic import RedirectView

from chat_app.browser import installation, pages
from chat_app.rest import reference
from chat_app.rest.edge import UnknownPathView
from uamp_project import languages, messages_path
from uamp_project.first_start.views import connect_model, first_invitation, setup
from uamp_project.monitoring.metrics_endpoint import show_metrics
from uamp_project.sign_in import views as sign_in
from uamp_project.single_sign_on import views as single_sign_on

urlpatterns = [
    path("v1/messages", messages_path.messages, name="messages"),
    path("", pages.chat, name="home"),
    path("chats/<str:chat_id>", pages.chat, name="chat"),
    path("money", pages.money, name="money"),
    path("style/", pages.style, name="style"),
    path("diagram/", pages.diagram, name="diagram"),
    path("manifest/<str:language>.webmanifest", installation.manifest, name="manifest"),
    path("service-worker.js", installation.service_worker, name="service_worker"),
    path("offline", installation.offline, name="offline"),
    path("language", languages.choose, name="language"),
    path("jsi18n/<str:language>", languages.catalogue, name="jsi18n"),
    path("metrics", show_metrics, name="metrics"),
    path("setup", setup, name="setup"),
    path("setup/invitation/<str:chat_id>", first_invitation, name="first_invitation"),
    path("connect-model", connect_model, name="connect_model"),
    path("login", sign_in.LoginView.as_view(), name="login"),
    path("login", sign_in.LoginView.as_view(), name="account_login"),
    path("login/oidc", single_sign_on.begin, name="single_sign_on"),
    path("login/oidc/callback", single_sign_on.finish, name="single_sign_on_callback"),
    path("logout", sign_in.LogoutView.as_view(), name="logout"),
    # Passwords are changed in one form, which counts wrong old passwords.
    path("admin/password_change/", RedirectView.as_view(pattern_name="sessions_app:password")),
    path("admin/login/", sign_in.AdminLoginView.as_view()),
    path("admin/", admin.site.urls),
    path("", include("uamp_project.account_security.urls")),
    path("", include("chat_app.urls")),
    path("", include("payments_app.urls")),
    path("", include("signing_app.urls")),
    path("", include("sessions_app.urls")),
    path("", include("federation_app.urls")),
    path("", include("gateway_app.urls")),
    path("api/schema", reference.schema, name="schema"),
    path(
        "api/docs",
        reference.ApiDocsView.as_view(),
        name="api-docs",
    ),
    re_path(r"^api/", UnknownPathView.as_view()),
]
