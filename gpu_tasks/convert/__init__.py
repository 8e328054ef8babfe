"""The records of the systems that this project re-creates, brought into the form of its own.

Three forms are known, told apart by their keys. Whatever can be computed from the rest of a record is computed, and a
record that contradicts itself is refused with file, field, expected and found: ``checking`` says how, ``qda`` and
``learner`` say what follows from what.
"""
