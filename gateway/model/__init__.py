"""What travels between the rooms: identities, entities, decisions, callers. No I/O, no framework."""
