"""Text → checked definition: grammar, AST, checks, range inference, printer, errors."""
