"""The parts of RAPTOR (arXiv:2401.18059): leaves, clusters, the tree, search in it."""
