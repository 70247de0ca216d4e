"""Other forms of a person's name: "William J. Clinton" is Bill Clinton, and "Robert 'Bob' Dylan" is Bob Dylan."""

from __future__ import annotations

import re

_GROUPS = """alexander alex, andrew andy drew, anthony tony, benjamin ben, charles charlie chuck, christopher chris,
daniel dan danny, david dave, donald don, douglas doug, edward ed eddie ted, frederick fred freddie,
gregory greg, jacob jake, james jim jimmy, jeffrey jeff, john jack johnny, jonathan jon, joseph joe joey,
joshua josh, kenneth ken kenny, lawrence larry, leonard leo len, louis lou, matthew matt, michael mike,
nathaniel nate, nicholas nick, patrick pat, peter pete, philip phil, raymond ray, richard dick rick,
robert bob bobby rob robbie, ronald ron ronnie, samuel sam sammy, stephen steven steve, theodore ted
teddy, thomas tom tommy, timothy tim, vincent vince, walter walt, william bill billy will, zachary zach,
abigail abby, alexandra alex, barbara barb, catherine kate cathy, deborah debbie, elizabeth liz beth
betty, jacqueline jackie, jennifer jen jenny, jessica jess, judith judy, katherine kate kathy katie,
margaret maggie meg peggy, pamela pam, patricia pat patty, rebecca becky, susan sue susie, victoria vicky"""
GROUPS = [frozenset(group.split()) for group in _GROUPS.split(",")]
_MIDDLE = r"(?:\s+(?:[A-Z]\.?(?=\s)|[\"“'‘(]\w+[\"”'’)]))?"
_GENERATION = r"(?!,?\s+(?:jr|sr|ii|iii|iv|junior|senior)\b)"


def in_gold_form(gold: str, prediction: str) -> str:
    """The prediction with the name as the gold answer writes it, if that is a given name and a family name.

    Full and short forms of a given name stand for each other. An initial or a nickname may stand between the names.
    "Robert Downey Sr." is left as it is.
    """
    parts = gold.strip(" .").split()
    if len(parts) != 2 or not all(part.isalpha() for part in parts):
        return prediction
    given, family = parts
    names = {given.lower()}.union(*(group for group in GROUPS if given.lower() in group))
    forms = "|".join(sorted(names))
    pattern = rf"\b(?:{forms}){_MIDDLE}\s+{family}\b{_GENERATION}"
    quoted = rf"\b[A-Z][\w-]+\s+[\"“'‘(]{given}[\"”'’)]\s+{family}\b"
    whole = f"{given} {family}"
    shown = whole.title() if whole.islower() else whole
    return re.sub(
        rf"{quoted}|{pattern}",
        lambda match: match[0] if match[0].lower() == whole.lower() else shown,
        prediction,
        flags=re.IGNORECASE,
    )
