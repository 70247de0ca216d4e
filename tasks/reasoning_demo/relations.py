"""What the invented world's passages can say: relations between kinds of entities, each with one wording."""

from __future__ import annotations

from dataclasses import dataclass

YEARS = range(1801, 2000)


@dataclass(frozen=True, slots=True)
class Relation:
    """A relation that has one object for each subject, or a list of them.

    Args:
        noun: Its name in questions and claims: "the NOUN of ...".
        subject: Kind of its subject.
        object: Kind of its object; ``year`` for a year.
        sentence: The sentence that states it, with ``{s}`` and ``{o}``.
        many: Whether it has a list of three objects.
    """

    noun: str
    subject: str
    object: str
    sentence: str
    many: bool = False


RELATIONS = {
    relation.noun: relation
    for relation in (
        Relation("author", "work", "person", "The author of {s} is {o}."),
        Relation("setting", "work", "town", "{s} is set in {o}."),
        Relation("publication", "work", "year", "{s} was published in {o}."),
        Relation("birthplace", "person", "town", "{s} was born in {o}."),
        Relation("teacher", "person", "person", "The teacher of {s} was {o}."),
        Relation("patron", "person", "person", "The patron of {s} was {o}."),
        Relation("mayor", "town", "person", "The mayor of {s} is {o}."),
        Relation("river", "town", "river", "{s} lies on the river {o}."),
        Relation("province", "town", "province", "{s} belongs to the province of {o}."),
        Relation("seat", "body", "town", "{s} has its seat in {o}."),
        Relation("founder", "body", "person", "The founder of {s} was {o}."),
        Relation("foundation", "body", "year", "{s} was founded in {o}."),
        Relation("source", "river", "province", "{s} has its source in {o}."),
        Relation("guardian", "river", "person", "The guardian of {s} is {o}."),
        Relation("capital", "province", "town", "The capital of {s} is {o}."),
        Relation("governor", "province", "person", "The governor of {s} is {o}."),
        Relation("donor", "prize", "person", "The donor of {s} was {o}."),
        Relation("winners", "prize", "person", "The winners of {s} are {o}.", many=True),
    )
}
COMPARED = {"publication": "was published first", "foundation": "was founded first"}  # relation -> wording

# kind -> number of entities in the test part; the training part has half of them
SIZES = {"work": 90, "person": 160, "town": 50, "body": 44, "prize": 44, "river": 16, "province": 16}

ADJECTIVES, NOUNS = map(
    str.split,
    (
        "Silent Golden Broken Distant Copper Winter Hidden Narrow Bitter Crimson Hollow Wooden Frozen Restless "
        "Northern Velvet Foreign Second Empty Patient Royal Sudden Green Heavy Little Secret Quiet Sharp Strange "
        "Sweet Thick Young Bright Honest Smooth Purple Double Rapid Final Simple",
        "Bridge Lantern Harbour Garden Mirror Orchard Letter Mountain Kitchen Voyage Horse Window Ladder Island Market "
        "Summer Piano Knife Station Crown Ocean Meadow Forest Castle Prince Rose Storm Wheel Shadow Song Tower Temple "
        "Tiger Train Valley Wedding Wolf Desert Doctor Engine",
    ),
)
BODIES = ["Guild", "Society", "Academy", "Observatory", "Company", "Library", "Shipyard", "College"]
PRIZES = ["Prize", "Medal", "Ribbon", "Trophy"]
ENDINGS = ["Hill", "Ford", "Bay", "Mill"]  # of towns whose names are alike
