"""Text → tree: grammar, parser and its hints, the tree as it was written, errors with a place."""
