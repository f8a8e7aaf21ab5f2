"""Which options a def runs with: tuned ones, else the default."""
