"""Processes for work that may crash, hang or take too much memory."""
