"""Multi-hop questions and claims over an invented world, with known chains of facts."""
