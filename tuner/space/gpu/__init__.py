"""The knobs of a def on a GPU."""
