"""What is learned from measured candidates: features, a model of them, and how good it is."""
