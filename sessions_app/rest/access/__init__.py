"""REST and pages for access: the account, keys, OAuth and tickets."""
