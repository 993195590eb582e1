"""The paths of the server: every room's own list, and nothing but paths."""

from django.contrib import admin
from django.urls import include, path

from chat_app.views import pages

urlpatterns = [
    path("", pages.chat, name="home"),
    path("chats/<str:chat_id>", pages.chat, name="chat"),
    path("login", pages.LoginView.as_view(), name="login"),
    path("logout", pages.LogoutView.as_view(), name="logout"),
    path("admin/", admin.site.urls),
    path("", include("chat_app.urls")),
    path("", include("sessions_app.urls")),
]
