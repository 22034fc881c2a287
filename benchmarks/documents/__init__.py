"""What the documents say in numbers, found in results/reference; ../write_documents.py puts it into their templates."""
