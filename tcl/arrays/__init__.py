"""What callers pass: arrays of all kinds, checked against a def."""
