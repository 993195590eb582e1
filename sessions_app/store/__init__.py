"""The turn store: the two writes of a turn, grouped into few transactions.

`orm` is the readable body, `sql` the fast one; tests hold them equal row by row.
"""
