"""The browser's pages; their scripts are in `static`, their templates in `templates`.

A person's account pages are in `sessions_app.rest`. Data comes over REST and UAMP.
"""
