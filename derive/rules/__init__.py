"""The rules that turn events into facts, one kind of fact a file."""
