"""The checked definition: names resolved, types decided; walks over it, its canonical form."""
