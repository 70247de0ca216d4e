"""Places and people of the open domain: pages and questions."""

from __future__ import annotations

from lm_eval_rag.tasks.crag_demo.site import INVALID, Question, SitePage, Table, either, page
from lm_eval_rag.tasks.crag_demo.world import World

TOWNS = ("Ostrand", "Pellworth", "Dunmere")


def pages(world: World) -> dict[str, SitePage]:
    """One article for each entity, by ``entity:NAME``."""
    articles = {}
    for name, (text, box) in world.entities.items():
        rows = tuple((key.replace("_", " "), value) for key, value in box.items())
        tables = [Table(name, ("Property", "Value"), rows)] if rows else []
        articles[f"entity:{name}"] = page(f"wiki/{name.replace(' ', '_')}", f"{name} - encyclopedia", [text], tables)
    return articles


def questions(world: World) -> tuple[Question, ...]:
    """One of each type."""
    box = {name: facts for name, (_, facts) in world.entities.items()}
    towns = [f"entity:{name}" for name in TOWNS]
    early = [name for name in TOWNS if int(box[name]["founded"]) < 1300]
    older = min(("Ostrand", "Pellworth"), key=lambda name: int(box[name]["founded"]))
    people = sum(int(box[name]["population"].replace(",", "")) for name in TOWNS)
    height = box["Dunmere Lighthouse"]["height"]
    builder = box["Dunmere Lighthouse"]["architect"]
    born, died = box[builder]["birth_date"], box[builder]["death_date"]
    age = int(died[:4]) - int(born[:4]) - (died[5:] < born[5:])
    return (
        Question("simple", "static", "how tall is the dunmere lighthouse?", (height, "71 metres"),
                 ("entity:Dunmere", "entity:Dunmere Lighthouse")),
        Question("simple_w_condition", "static", "which town in veldmark has held a kite regatta since 1924?",
                 ("Pellworth",), ("entity:Pellworth",)),
        Question("set", "static", "which towns of veldmark were founded before 1300?", either(early), tuple(towns)),
        Question("comparison", "static", "which town is older, ostrand or pellworth?", (older,),
                 ("entity:Ostrand", "entity:Pellworth")),
        Question("aggregation", "slow-changing", "how many people live in ostrand, pellworth and dunmere together?",
                 (f"{people:,}", str(people)), tuple(towns)),
        Question("multi-hop", "static", "in which year was the engineer of the dunmere lighthouse born?", (born[:4],),
                 ("entity:Dunmere Lighthouse", f"entity:{builder}")),
        Question("post-processing", "static", "how old was orla bexley when she died?", (f"{age} years", str(age)),
                 (f"entity:{builder}",)),
        Question("false_premise", "static", "what is the name of the fourth province of veldmark?", INVALID,
                 ("entity:Veldmark",)),
    )  # fmt: skip
