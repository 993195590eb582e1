"""The browser's pages; their scripts are in `static`, their templates in `templates`.

The pages of a person's account are in `sessions_app.rest`. Data comes over REST and UAMP.
"""
