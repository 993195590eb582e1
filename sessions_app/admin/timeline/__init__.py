"""The timeline of a chat or a response: log, tool calls, payments and money in one order.

`pages` contains the admin's pages, `reading` reads rows, `items` turns them into items (`logged`,
`rows`; see `item`), and `picture` lays them out. The timeline is read-only; operators' actions are
elsewhere.
"""
