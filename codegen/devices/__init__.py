"""What devices are like, as data."""
