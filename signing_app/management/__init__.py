"""Commands of manage.py for the keys of signatures."""
