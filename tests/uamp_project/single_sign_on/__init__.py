"""Tests of signing in with an OpenID Connect provider."""
