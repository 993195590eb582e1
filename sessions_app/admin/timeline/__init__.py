"""The time line of a chat or a response: log, tool calls, payments and money in one order.

`pages` has the admin's pages, `reading` reads rows, `items` makes entries of them
(`logged`, `rows`; an `item` is one), `picture` places
them. What an operator does stands elsewhere: nothing is changed here.
"""
