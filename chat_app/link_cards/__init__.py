"""Cards of the pages to which messages of people link: title, description, name of the site.

`addresses` finds the links of a text, `heads` reads the head of a page, `cards` keeps what was
read, `tasks` has a worker fetch a page. Off unless `UAMP_LINK_CARDS` is on (docs/link-cards.md).
"""
