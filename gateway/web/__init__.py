"""The HTTP surface: reads a request, calls one operation, renders its answer."""
