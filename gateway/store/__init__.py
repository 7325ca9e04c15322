"""Where everything is kept: one DuckDB file, one writer, two readers, one hash chain."""
