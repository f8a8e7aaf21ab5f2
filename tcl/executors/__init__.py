"""What runs a def on arrays."""
