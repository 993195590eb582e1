"""The audit: who used a right, on what, when and why; and the bases of all admin pages.

Every app may record here, so it imports none of them. The ledger's checks of itself are in
`payments_app.audit`.
"""
