"""What the tuner sees of a machine."""
