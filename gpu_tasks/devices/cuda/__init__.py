"""The NVIDIA GPU: the committed PTX through the driver, on torch's streams and in torch's CUDA graphs.

Read in this order: ``errors`` (what each code of the driver means for a run), ``driver`` (libcuda through ctypes),
``selection`` (whether and which GPU is used), ``device`` (the device interface on top). Importing any of them needs
neither torch nor a driver. How to run on a GPU host is in docs/gpu.md.
"""
