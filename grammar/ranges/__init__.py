"""Range inference: sizes → ranges of indices, shapes, run-time checks, findings."""
