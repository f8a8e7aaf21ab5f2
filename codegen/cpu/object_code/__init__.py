"""Object code: made, kept, loaded."""
