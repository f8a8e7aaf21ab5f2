"""The loop IR: what will run; how it is made of a checked definition, printed, verified, run."""
