"""The audit: who used a right, on what, when and why; operators' roles; the bases of admin pages.

Every app may record here, so it imports none of them. The ledger's checks of itself are in
`payments_app.audit`.
"""
