"""A foreign store: any directory of Cedar policies, a schema and entities, decided over as it stands."""
