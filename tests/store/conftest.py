"""A real database in a temporary directory, and the rows to put into it."""
