"""The modules of CRAG's hybrid system (arXiv:2408.05141), each a plan that can be switched off."""
