"""The parts of CRP-RAG (doi:10.20944/preprints202411.1648.v1): graph, construction, knowledge, reasoning."""
