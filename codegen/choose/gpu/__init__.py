"""Choices for a GPU."""
