"""What a scheduled kernel asks of a GPU, counted from the loop IR: no GPU is needed.

Displays, choosers and models read the same counts. Nothing here is measured.
"""
