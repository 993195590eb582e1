"""The paths of the keys."""

from django.urls import path

from signing_app import views

app_name = "signing_app"

urlpatterns = [path(".well-known/jwks.json", views.published_keys, name="jwks")]
