"""A search while it runs: its loop, its workers, what it reports and keeps."""
