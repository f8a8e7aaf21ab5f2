"""Search: knobs, strategies, evaluation, measurement, the tuning cache."""
