"""Second factors, passkeys, email addresses and forgotten passwords, on django-allauth.

Passwords, known browsers, pauses and the way in are in `uamp_project.sign_in`.
"""
