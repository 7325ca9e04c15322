"""Who is calling: keys, tokens, passwords and second factors."""
