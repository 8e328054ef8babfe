"""pyptx sources of the QDA kernels and the PTX text that is pinned from them.

Importing this package needs nothing but the standard library; only ``kernels.build`` needs pyptx, and nothing that
runs at night imports any of it: the committed text under ``kernels/ptx/`` is what is executed.
"""
