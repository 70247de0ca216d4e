"""The official files of the knowledge graphs by sha256: they are searched as the real server searches them.

Files of your own are searched by a BM25 that is right on small graphs too (:mod:`lm_eval_rag.harness.kg.names`).
"""

from __future__ import annotations

COMMIT = "ad1518887dd4d9ebcd7de95388c7a62751e7705c"  # of facebookresearch/CRAG, for the hashes below
OFFICIAL = {  # name -> sha256 at that commit, under mock_api/cragkg
    "company_name.dict": "e92fcfb64911508705b59af046cfff8b4edc38ddd6dff391c27870f2cac94ca6",
    "movie_db.json": "673de2da21bd594a8acb8cdb7765346f07ccf4d4a88a74942416d1748c12964b",
    "person_db.json": "85992666f528e05193cc3c97bde43e8c24a25ad59bd1a0d359df050799f79c79",
    "year_db.json": "05d32ffc43e749ab6e38484b04ec6c6b0f60830f306f514309812c3cba4ed91b",
    "artist_dict_simplified.pickle": "7f935fc9b76b26b52843d2f52c46aaff00f1193b6e5bc9b1529d1ae9456b6a2a",
    "artist_work_dict.pickle": "bc6db55ab0e32e13769a2473e14050f0828eea82aef5f6e279ef6f9543a54ffc",
    "grammy_df.pickle": "4c6ee52e6b083a980063ee290eb0b2d6926e1478c0d696380218ca19da34f166",
    "rank_dict_hot100.pickle": "965cf61f1daae796d274ed90a20e724c00568eb2586339e148d97606cb608e1e",
    "song_dict_hot100.pickle": "a5d5943fdd69a5c7730dbc3419730559abd4ba31704cf7bc3ea48ab2e98ded4c",
    "song_dict_simplified.pickle": "bb8e988448b76518eb0e16ae894afa982187f972956dd12bd8e787b1a9f732f4",
    "kg.0.jsonl.bz2": "3c25a6533bab6d13254f627ddb2f69f60a127233ec51990c9109bf88e800ee30",
    "kg.1.jsonl.bz2": "a636adabb4b5af258f734bf2ad1a24a82ef84f451aaaec5e5324c4ce5753971a",
    "soccer_team_match_stats.pkl": "86c78cb0e43f294f94d329083b4cfd31f05efed23d3ba51ed9e40dbcad656724",
}
