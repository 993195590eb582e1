"""The browser's pages; their scripts are in `static`, their templates in `templates`."""
