"""The screens of the product: each page in each state that a person can meet.

`screens` has the lists by subject, `stage` the running product with a chat that shows everything,
`sheet` the pictures. `make screens` writes a contact sheet; tests/journeys/test_screens.py asserts
that axe finds nothing on any of them.
"""
