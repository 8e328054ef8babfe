"""A GPU that is not there: power, counter and NVML behave as an A100's do, from a seed, on a virtual clock.

The order of things: ``power`` says what the board draws, ``counter`` what the energy counter makes of it, ``gpu`` what
work does to both, ``nvml`` how it is read, ``instruments`` what a protocol measures with.
"""
