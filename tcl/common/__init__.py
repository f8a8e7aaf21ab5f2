"""Small things that all of the package uses."""
