"""The cost of queries when there is a lot: 100,000 rows in every table, on either database."""
