"""Choices for a CPU."""
