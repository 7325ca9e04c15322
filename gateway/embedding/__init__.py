"""Embeddings: texts as vectors that lie close together when their meanings do. Knows no store and no policy."""
