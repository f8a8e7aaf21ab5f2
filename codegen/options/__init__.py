"""How a def is mapped to a machine: what users and searches say."""
