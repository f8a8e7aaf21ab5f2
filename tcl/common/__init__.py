"""What every layer uses: errors, warnings, signals, files, extras, numbers for people."""
