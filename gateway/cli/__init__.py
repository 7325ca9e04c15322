"""The command line: local commands on a data directory, and a client of a running gateway."""
