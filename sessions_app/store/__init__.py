"""The turn store: the two writes of a turn, grouped into few transactions.

`orm` writes with Django's ORM, `sql` with prepared statements, in fewer of them; a test compares
their rows.
"""
