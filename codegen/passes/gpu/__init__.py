"""Passes for a GPU: blocks, threads, shared memory."""
