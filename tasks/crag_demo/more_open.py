"""More questions about places and people of the open domain: four of each type."""

from __future__ import annotations

from collections.abc import Mapping

from lm_eval_rag.tasks.crag_demo.site import INVALID, Question, either
from lm_eval_rag.tasks.crag_demo.world import World

TOWNS = ("Ostrand", "Pellworth", "Dunmere", "Kelbridge", "Marlow Bay")
Boxes = Mapping[str, Mapping[str, str]]


def more_open(world: World) -> tuple[Question, ...]:
    """The questions in the order of CRAG's types."""
    box = {name: facts for name, (_, facts) in world.entities.items()}
    parts = (_facts, _sets, _compared, _totals, _linked, _worked, _false)
    return tuple(question for part in parts for question in part(box))


def _asked(kind: str, dynamic: str, rows: tuple[tuple[str, tuple[str, ...], tuple[str, ...]], ...]) -> list[Question]:
    """Questions of (text, answers, names of the entities whose articles help)."""
    return [
        Question(kind, dynamic, text, answers, tuple(f"entity:{name}" for name in names))
        for text, answers, names in rows
    ]


def _facts(box: Boxes) -> list[Question]:
    return [
        *_asked("simple", "static", (
            ("how long is the isk bridge?", (box["Isk Bridge"]["length"],), ("Isk Bridge",)),
            ("who was the architect of the ostrand opera house?", (box["Ostrand Opera House"]["architect"],),
             ("Ostrand Opera House",)),
            ("what is the currency of veldmark?", (box["Veldmark"]["currency"],), ("Veldmark",)),
            ("in which year was kelbridge founded?", (box["Kelbridge"]["founded"],), ("Kelbridge",)),
        )),
        *_asked("simple_w_condition", "static", (
            ("which bridge over the isk was opened in 1889?", ("Isk Bridge", "the Isk Bridge"), ("Isk Bridge", "Isk")),
            ("which building in ostrand was designed by mirela stroud?", ("Ostrand Opera House",),
             ("Ostrand Opera House", "Mirela Stroud")),
            ("which town of veldmark has built ships since 1702?", ("Marlow Bay",), ("Marlow Bay",)),
            ("which town of veldmark was founded in 1190?", ("Dunmere",), ("Dunmere",)),
        )),
    ]  # fmt: skip


def _sets(box: Boxes) -> list[Question]:
    early = [name for name in TOWNS if int(box[name]["founded"]) < 1200]
    late = [name for name in TOWNS if int(box[name]["founded"]) > 1400]
    isk = [name for name in TOWNS if box[name].get("river") == "Isk"]
    return _asked("set", "static", (
        ("which towns of veldmark were founded before 1200?", either(early), TOWNS),
        ("which towns of veldmark were founded after 1400?", either(late), TOWNS),
        ("which towns of veldmark lie on the isk?", either(isk), ("Isk", *isk)),
        ("which three provinces make up veldmark?", either(box["Provinces of Veldmark"]["names"].split(", ")),
         ("Provinces of Veldmark",)),
    ))  # fmt: skip


def _compared(box: Boxes) -> list[Question]:
    larger = max(("Pellworth", "Kelbridge"), key=lambda name: _number(box[name]["population"]))
    older = min(("Dunmere", "Marlow Bay"), key=lambda name: int(box[name]["founded"]))
    first = min(("Isk Bridge", "Ostrand Opera House"), key=lambda name: int(box[name]["built"]))
    elder = min(("Orla Bexley", "Tavin Roake"), key=lambda name: box[name]["birth_date"])
    return _asked("comparison", "static", (
        ("which town has more inhabitants, pellworth or kelbridge?", (larger,), ("Pellworth", "Kelbridge")),
        ("which town is older, dunmere or marlow bay?", (older,), ("Dunmere", "Marlow Bay")),
        ("which was built first, the isk bridge or the ostrand opera house?", (first,),
         ("Isk Bridge", "Ostrand Opera House")),
        ("who was born first, orla bexley or tavin roake?", (elder,), ("Orla Bexley", "Tavin Roake")),
    ))  # fmt: skip


def _totals(box: Boxes) -> list[Question]:
    people = _number(box["Kelbridge"]["population"]) + _number(box["Marlow Bay"]["population"])
    everyone = sum(_number(box[name]["population"]) for name in TOWNS)
    isk = sum(box[name].get("river") == "Isk" for name in TOWNS)
    provinces = len(box["Provinces of Veldmark"]["names"].split(", "))
    return _asked("aggregation", "slow-changing", (
        ("how many people live in kelbridge and marlow bay together?", (f"{people:,}", str(people)),
         ("Kelbridge", "Marlow Bay")),
        ("how many people live in the five towns of veldmark together?", (f"{everyone:,}", str(everyone)), TOWNS),
        ("how many towns of veldmark lie on the isk?", (str(isk),), ("Isk", "Ostrand", "Kelbridge")),
        ("how many provinces does veldmark have?", (str(provinces),), ("Provinces of Veldmark",)),
    ))  # fmt: skip


def _linked(box: Boxes) -> list[Question]:
    engineer, architect = box["Isk Bridge"]["architect"], box["Ostrand Opera House"]["architect"]
    return _asked("multi-hop", "static", (
        ("in which year was the engineer of the isk bridge born?", (box[engineer]["birth_date"][:4],),
         ("Isk Bridge", engineer)),
        ("in which year did the architect of the ostrand opera house die?", (box[architect]["death_date"][:4],),
         ("Ostrand Opera House", architect)),
        ("on which river does the capital of veldmark lie?", (box["Ostrand"]["river"],), ("Veldmark", "Ostrand")),
        ("what was the occupation of the person who designed the dunmere lighthouse?",
         (box["Orla Bexley"]["occupation"],), ("Dunmere Lighthouse", "Orla Bexley")),
    ))  # fmt: skip


def _worked(box: Boxes) -> list[Question]:
    ages = {name: _age(box[name]) for name in ("Tavin Roake", "Mirela Stroud")}
    apart = int(box["Ostrand Opera House"]["built"]) - int(box["Isk Bridge"]["built"])
    density = _number(box["Veldmark"]["area"].removesuffix(" km2")) - _number(box["Isk"]["basin"].removesuffix(" km2"))
    return _asked("post-processing", "static", (
        ("how old was tavin roake when he died?", (f"{ages['Tavin Roake']} years", str(ages["Tavin Roake"])),
         ("Tavin Roake",)),
        ("how old was mirela stroud when she died?", (f"{ages['Mirela Stroud']} years", str(ages["Mirela Stroud"])),
         ("Mirela Stroud",)),
        ("how many years after the isk bridge was the ostrand opera house built?", (f"{apart} years", str(apart)),
         ("Isk Bridge", "Ostrand Opera House")),
        ("by how many square kilometres is veldmark larger than the basin of the isk?",
         (f"{density:,} km2", f"{density:,}", str(density)), ("Veldmark", "Isk")),
    ))  # fmt: skip


def _false(box: Boxes) -> list[Question]:
    return _asked("false_premise", "static", (
        ("when was the tunnel under the dunmere lighthouse to marlow bay opened?", INVALID, ("Dunmere Lighthouse",)),
        ("which king of veldmark was crowned in the ostrand opera house?", INVALID, ("Ostrand Opera House",)),
        ("in which year did pellworth become the capital of veldmark?", INVALID, ("Pellworth", "Veldmark")),
        ("which nobel prize did orla bexley win for the isk bridge?", INVALID, ("Orla Bexley", "Isk Bridge")),
    ))  # fmt: skip


def _number(text: str) -> int:
    return int(text.replace(",", ""))


def _age(box: Mapping[str, str]) -> int:
    born, died = box["birth_date"], box["death_date"]
    return int(died[:4]) - int(born[:4]) - (died[5:] < born[5:])
