"""Passes over the loop IR: one file each, a frozen dataclass that maps a program to a program."""
