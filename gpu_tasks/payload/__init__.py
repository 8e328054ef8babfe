"""Named sets of frozen draws: building them from MNIST, finding, reading and verifying them."""
