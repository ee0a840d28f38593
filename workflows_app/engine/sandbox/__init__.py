"""Runs the `code` of a block in a process of its own, cut off from everything the kernel lets us cut off."""
