"""How a model is made from measured candidates, and how good it is."""
