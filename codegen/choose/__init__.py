"""What is chosen where nobody said: models of machines, and the presets."""
