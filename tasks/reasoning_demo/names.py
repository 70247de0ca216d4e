"""Names of the invented world: a beginning and an ending, so that they are short and can be read aloud."""

from __future__ import annotations

import random

BEGINNINGS, GIVEN, FAMILY, PLACE = map(
    str.split,
    (
        "Bel Bra Bre Bru Cal Cor Cro Dan Del Dor Fal Fen Gar Gra Gre Hal Har Hol Il Jer Jor Kal Ken Kor Lan Lis Lor "
        "Mal Mar Men Mor Nor Or Pal Per Pra Ral Rem Rom San Ser Sil Sol Tal Tor Tra Tre Tun Val Vel Vin Wes Yan Zan",
        "a en o is ia in us ora el an ina ett",
        "ley ton mer rin oss and ow ard ink urn ock ulf ett ace",
        "wick mere holm stead dal port gate ova ast esk",
    ),
)


def given_name(rng: random.Random) -> str:
    """``Kalora``."""
    return rng.choice(BEGINNINGS) + rng.choice(GIVEN)


def family_name(rng: random.Random) -> str:
    """``Brurin``."""
    return rng.choice(BEGINNINGS) + rng.choice(FAMILY)


def place_name(rng: random.Random) -> str:
    """``Zanmere``."""
    return rng.choice(BEGINNINGS) + rng.choice(PLACE)
