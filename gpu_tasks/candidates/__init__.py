"""What a candidate spec stands for: from a path, a variant, a git ref or a bundle to kernels that no longer change.

``repository`` asks git, ``building`` makes PTX of sources, ``offers`` reads a spec, ``bundle`` freezes what it means.
"""
