"""The turn store: the two writes of a turn, grouped into few transactions.

`orm` uses Django's ORM. `sql` uses fewer, prepared statements; a test compares their rows.
"""
