"""Cards for the pages that people's messages link to: title, description, site name.

`addresses` finds the links in a text, `heads` reads the head of a page, `cards` stores the result,
`tasks` has a worker fetch a page. Off unless `UAMP_LINK_CARDS` is on (docs/link-cards.md).
"""
