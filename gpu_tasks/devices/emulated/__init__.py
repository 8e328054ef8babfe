"""A PTX emulator: executes the committed kernel text on the CPU, with the checks of a memory sanitizer.

Read in this order: ``parser`` (what text is accepted), ``operations`` (what each arithmetic instruction means),
``memory`` and ``races`` (what is checked), ``instructions`` (memory and warp-wide instructions), ``machine`` (which
thread runs when), ``device`` (the device interface on top). The subset is described in docs/emulator.md.
"""
