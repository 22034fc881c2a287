"""The workflow's side: from raw images to a report. The library imports nothing of it."""
