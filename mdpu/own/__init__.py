"""A classifier from people's own files: tables, pictures, what was read of them, and the page."""
