"""A candidate kernel beside another: on the emulator with every check, and prediction by prediction.

``parallel`` shares work out over processes, ``emulation`` runs draws there, ``differing`` lists where predictions part.
What is measured is ``gpu_tasks.energy``'s.
"""
