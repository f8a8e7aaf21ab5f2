"""Gradients of defs, derived as defs: text in, text out."""
