"""What a search may try: knobs and constraints, derived from a def and a machine."""
