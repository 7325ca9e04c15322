"""What the wire says: the schemas of bodies, query strings and answers, a file a noun, for the table of operations."""
