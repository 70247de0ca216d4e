"""Questions over Wikipedia: multi-hop, fact checking and open-domain, with their corpora."""
