"""HTML and SVG: the report's page and what notebooks show are made of it."""
