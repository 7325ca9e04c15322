"""The MCP surface: tools over the table of operations, by streamable HTTP and on stdio."""
