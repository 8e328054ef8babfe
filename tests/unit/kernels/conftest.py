"""``pytest tests/unit/kernels --hypothesis-profile thorough`` runs a few hundred random problems instead of some."""

from hypothesis import settings

settings.register_profile("thorough")
