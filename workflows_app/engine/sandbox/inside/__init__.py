"""What runs on the far side of the fork: the zygote and the block's own process.

These modules import only the standard library and each other, because the zygote loads them
without the rest of the project.
"""
