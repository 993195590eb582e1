"""The page of the audit, and the bases of the admin pages of all apps.

`records` has the bases (read-only rows, bounded counts, recorded actions), `columns` and `filters`
the building blocks of lists, `pages` the page.
"""

from audit_app.admin import pages

__all__ = ["pages"]
