"""What the gateway does: one table of operations, each of them typed input, a decision, a change or a read, a reply."""
