"""The page of the audit, and the bases of the admin pages of all apps.

`records` has the bases (read-only rows, bounded counts, acts that are recorded), `columns` and
`filters` what lists are made of, `pages` the page.
"""

from audit_app.admin import pages

__all__ = ["pages"]
