"""GraphRAG: units, records read with patience, merging, communities, reports, local and global search, whole runs."""

from __future__ import annotations

import random
from hashlib import sha256

import pytest

from lm_eval_rag.harness.common.errors import CallError, PermanentError, TooLongError, UserError
from lm_eval_rag.harness.core.types import Passage
from lm_eval_rag.harness.plugin.engine import run
from lm_eval_rag.harness.scoring.normalise import count_words
from lm_eval_rag.harness.web.chunking import pieces
from lm_eval_rag.methods.graphrag import graphrag
from lm_eval_rag.methods.graphrag_parts.communities import Community, Context, communities_of
from lm_eval_rag.methods.graphrag_parts.entity_graph import Graph
from lm_eval_rag.methods.graphrag_parts.extraction import Named, Stated, parsed
from lm_eval_rag.methods.graphrag_parts.global_search import Partial, batches, most_helpful, partial_of, reports_at
from lm_eval_rag.methods.graphrag_parts.indexing import VERSION, build_graph, estimated_calls
from lm_eval_rag.methods.graphrag_parts.local_search import relations_around, reports_around, surroundings, units_around
from lm_eval_rag.methods.graphrag_parts.records import Entity, Index, Relation, Report, Unit, index_of, rows
from lm_eval_rag.methods.graphrag_parts.text_units import units_of
from lm_eval_rag.methods.prompts.worded import wordings

pytest.importorskip("graspologic_native", reason="needs the extra graphrag")

# --- units


@pytest.mark.parametrize(
    ("tokens", "overlap", "expected"),
    [
        (10, 0, ["a b, c. d e"]),
        (3, 0, ["a b,", "c. d", "e"]),
        (4, 2, ["a b, c", ", c. d", ". d e"]),
        (7, 3, ["a b, c. d e"]),
    ],
)
def test_units_overlap(tokens, overlap, expected):
    assert list(pieces("a b, c. d e", tokens, overlap)) == expected


def test_no_token_is_lost_and_none_stands_beyond_the_overlap():
    text = " ".join(f"w{i}" for i in range(100))
    for tokens, overlap in ((10, 3), (100, 99), (7, 0), (200, 20)):
        parts = [part.split() for part in pieces(text, tokens, overlap)]
        whole = parts[0] + [word for part in parts[1:] for word in part[overlap:]]
        assert whole == text.split() and all(len(part) <= tokens for part in parts)
    assert list(pieces(" \n", 5, 1)) == []


def test_a_unit_is_a_part_of_one_passage():
    units = units_of([Passage("p", "a b c"), Passage("q", ""), Passage("r", "d")], 2, 0)
    assert [(unit.id, unit.text, unit.passage) for unit in units] == [
        ("U0", "a b", "p"), ("U1", "c", "p"), ("U2", "d", "r"),
    ]  # fmt: skip
    with pytest.raises(UserError, match="chunk_overlap=5 is not allowed: give less than chunk_tokens=5"):
        units_of([], 5, 5)


# --- records


def test_records_in_the_form_that_is_asked_for():
    reply = "entity | Ada Moss | Person | A reader.\nrelation | Ada Moss | Bo | Ada read Bo's book. | 7"
    result = parsed(reply)
    assert result.entities == (Named("Ada Moss", "person", "A reader."), Named("Ada Moss", "", ""), Named("Bo", "", ""))
    assert result.relations == (Stated("Ada Moss", "Bo", "Ada read Bo's book.", 7.0),) and result.malformed == 0


@pytest.mark.parametrize(
    ("line", "kind", "values"),
    [
        ('- ("Entity" <|> "Ulm" <|> "place" <|> "A town")', Named, ("Ulm", "place", "A town")),
        ("1. **entity** | **Ulm** | place", Named, ("Ulm", "place", "")),
        ("ENTITY\tUlm\tplace\tA town | by a river", Named, ("Ulm", "place", "A town by a river")),
        ("relationship|Ada|Ulm|lives there|99", Stated, ("Ada", "Ulm", "lives there", 10.0)),
        ("relation | Ada | Ulm | lives there", Stated, ("Ada", "Ulm", "lives there", 1.0)),
        ("relation | Ada | Ulm | 5", Stated, ("Ada", "Ulm", "5", 1.0)),
        ("(relation | Ada | Ulm | a | b | 0)", Stated, ("Ada", "Ulm", "a b", 1.0)),
        ("| entity | Ulm | place | A town |", Named, ("Ulm", "place", "A town")),
        ("| relation | Ada | Ulm | lives there | 5 |", Stated, ("Ada", "Ulm", "lives there", 5.0)),
        ("relation | Ada | Ulm | lives there | 8/10", Stated, ("Ada", "Ulm", "lives there", 8.0)),
        ("relation | Ada | Ulm | lives there | Strength: 8", Stated, ("Ada", "Ulm", "lives there", 8.0)),
        ("entity | Mercury (planet) | body | small (dense)", Named, ("Mercury (planet)", "body", "small (dense)")),
        ("(entity | f(x) | function | (a) and (b))", Named, ("f(x)", "function", "(a) and (b)")),
        ("(entity | Ulm | place | A town (cut", Named, ("Ulm", "place", "A town (cut")),
    ],
)
def test_records_in_other_forms(line, kind, values):
    result = parsed(f"Here are the records:\n{line}")
    first = (result.relations if kind is Stated else result.entities)[0]
    assert first == kind(*values) and result.malformed == 1  # the line before


@pytest.mark.parametrize(
    "line",
    [
        "entity | Ulm", "entity", "relation | Ada", "relation | Ada | ada | herself | 3", "entity | *** | place | x",
        f"entity | {'a' * 201} | place | long", "thing | Ada | person | x", "Ada is a person.", "relation | | Ulm | x",
    ],
)  # fmt: skip
def test_what_cannot_be_read_is_counted(line):
    assert parsed(line) == parsed("").__class__(malformed=1)


@pytest.mark.parametrize("reply", ["", "none", " None. ", "- nothing\n", "```", "|---|---|"])
def test_nothing_is_no_malformed_record(reply):
    assert parsed(reply) == parsed("") and parsed("").malformed == 0


def test_a_reply_of_a_megabyte_is_read_at_once():
    assert parsed("x|" * 500_000).malformed == 1
    assert parsed("(" * 1_000_000).malformed == 0 and parsed(f"{'(' * 500_000}x{')' * 500_000}").malformed == 1
    assert len(parsed("entity | Ada | person | x\n" * 20_000).entities) == 20_000


# --- the preparation

WORLD = {
    "Ada reads Bo": (
        "entity | Ada | person | A reader.\nentity | Bo | person | A writer.\nrelation | Ada | Bo | reads | 8"
    ),
    "ADA lives in Ulm": "entity | ADA | person | Lives in Ulm.\nrelation | Ulm | ada | home of | 3",
    "Bo and Ada met": "entity | Bo | writer | Met Ada.\nrelation | Bo | Ada | met | 2\nthis is chatter",
    "Cy is alone": "entity | Cy | person | Alone.",
}
PASSAGES = [Passage(f"p{i}", text) for i, text in enumerate(WORLD)]


class Model:
    """Writes the records of each text, nothing more when gleaned, and marks what it describes and reports."""

    def __init__(self, **changes):
        self.asks, self.changes = [], changes

    def __call__(self, ask):
        step = next(name for name, one in wordings("graphrag").items() if one.template == ask.prompt.template)
        self.asks.append((step, ask))
        if step in self.changes:
            return self.changes[step]
        if step == "extract":
            return WORLD[ask.prompt.query.rpartition("Text: ")[2]]
        texts = " & ".join(passage.text for passage in ask.prompt.passages)
        return {"glean": "none", "describe": f"D({texts})", "report": f"Report on {texts}"}[step]

    def count(self, step):
        return sum(name == step for name, _ in self.asks)


def test_from_texts_to_a_graph(prepare):
    product = prepare(build_graph, model := Model(), PASSAGES)
    index = index_of(product.tables)
    assert [(e.name, e.type, e.degree, e.units) for e in index.entities.values()] == [
        ("Ada", "person", 2, ("U0", "U1", "U2")), ("Bo", "person", 1, ("U0", "U2")), ("Ulm", "", 1, ("U1",)),
        ("Cy", "person", 0, ("U3",)),
    ]  # fmt: skip
    assert index.entities["E0"].text == "Ada: D(A reader. & Lives in Ulm.)" and index.entities["E2"].text == "Ulm"
    first, second = index.relations.values()
    assert (first.text, first.weight, first.units) == ("Ada - Bo: D(reads & met)", 2.0, ("U0", "U2"))
    assert (second.text, second.weight) == ("Ulm - ada: home of", 1.0)
    assert product.notes == {"malformed record": 1}
    assert [model.count(step) for step in ("extract", "glean", "describe", "report")] == [4, 4, 3, 1]
    (report,) = index.reports.values()
    assert set(report.entities) == {"E0", "E1", "E2"} and (report.level, report.parent, report.parts) == (0, "", 0)
    glean = next(ask.prompt.render() for step, ask in model.asks if step == "glean")
    assert "Records:\nentity | Ada" in glean and glean.endswith("Missing records:")
    assert {(step, ask.max_tokens, ask.temperature) for step, ask in model.asks} == {
        ("extract", 2000, 0.0), ("glean", 2000, 0.0), ("describe", 500, 0.0), ("report", 2000, 0.0),
    }  # fmt: skip


def test_gleanings_add_records(prepare):
    product = prepare(build_graph, model := Model(glean="entity | Dora | person | Was missed."), PASSAGES, gleanings=2)
    assert "Dora" in [row["name"] for row in product.tables["entities"]] and model.count("glean") == 8
    assert prepare(build_graph, none := Model(), PASSAGES, gleanings=0) and none.count("glean") == 0


def test_a_gleaning_that_fails_keeps_what_was_extracted(prepare):
    whole = prepare(build_graph, Model(), PASSAGES)
    product = prepare(build_graph, Model(glean=TooLongError("does not fit")), PASSAGES)
    assert product.tables == whole.tables and product.notes == {"malformed record": 1, "gleaning failed": 4}
    with pytest.raises(CallError, match="filtered"):  # four of four texts
        prepare(build_graph, Model(glean=PermanentError("filtered")), PASSAGES)


def test_names_in_other_unicode_forms_are_one_entity(prepare):
    texts = {"a": "entity | Zoë | person | x", "b": "entity | Zoe\u0308 | person | y"}
    model = Model()
    replies = lambda ask: texts.get(ask.prompt.query.rpartition("Text: ")[2]) or model(ask)  # noqa: E731
    product = prepare(build_graph, replies, [Passage("p", "a"), Passage("q", "b")], gleanings=0)
    assert [row["units"] for row in product.tables["entities"]] == [("U0", "U1")]


def test_weights_of_the_variants(prepare):
    for variant, weight in (("paper", 2.0), ("official", 10.0)):
        assert prepare(build_graph, Model(), PASSAGES, variant=variant).tables["relations"][0]["weight"] == weight


def test_blank_and_malformed_replies(prepare):
    product = prepare(build_graph, Model(describe=" ", report="\n"), PASSAGES)
    assert product.tables["entities"][0]["text"] == "Ada: A reader. Lives in Ulm." and not product.tables["reports"]
    assert product.notes == {"malformed record": 1, "blank description": 3, "blank report": 1}
    product = prepare(build_graph, model := Model(extract="I cannot do that."), PASSAGES)
    assert product.notes == {"malformed record": 4, "unit without records": 4}
    assert {name: len(table) for name, table in product.tables.items()} == {
        "units": 4, "entities": 0, "relations": 0, "reports": 0,
    }  # fmt: skip
    assert model.count("report") == 0
    assert prepare(build_graph, Model(), []).tables["entities"] == []


@pytest.mark.parametrize("step", ["extract", "glean", "describe", "report"])
def test_a_failure_ends_the_preparation_of_few_texts(step, prepare):
    with pytest.raises(CallError, match="down"):
        prepare(build_graph, Model(**{step: CallError("down")}), PASSAGES)


def test_a_report_that_is_refused_for_good_is_left_out(prepare):
    product = prepare(build_graph, Model(report=PermanentError("filtered")), PASSAGES)
    assert product.tables["reports"] == [] and product.notes["report failed"] == 1


@pytest.mark.parametrize(("passages", "calls"), [([], 0), ([Passage("p", "word " * 600)], 6), (PASSAGES, 8)])
def test_the_estimate(passages, calls):
    estimate = estimated_calls(passages, chunk_tokens=1200, chunk_overlap=100, gleanings=1, seed=0)
    assert (estimate.chunks, estimate.calls) == (len(passages), calls)


# --- communities and reports


def graph(*edges, names=None):
    names = names or sorted({end for edge in edges for end in edge[:2]})
    degree = {name: sum(name in edge[:2] for edge in edges) for name in names}
    entities = tuple(Entity(name, f"{name}: about {name}", name, "", degree[name], ()) for name in names)
    relations = (Relation(f"R{i}", f"{a} - {b}", a, b, weight, ()) for i, (a, b, weight) in enumerate(edges))
    return Graph(entities, tuple(relations))


def clique(names):
    return [(a, b, 1.0) for i, a in enumerate(names) for b in names[i + 1 :]]


def test_communities_are_found_divided_and_the_same_each_time():
    left, right = [f"a{i}" for i in range(6)], [f"b{i}" for i in range(6)]
    whole = graph(*clique(left), *clique(right), ("a0", "b0", 1.0), names=[*left, *right, "alone"])
    coarse = communities_of(whole, 10, 0)
    assert [(one.level, set(one.entities)) for one in coarse] == [(0, set(left)), (0, set(right))]
    assert coarse == communities_of(whole, 10, 0)
    pairs = [edge for i in range(8) for edge in clique([f"n{i}{j}" for j in range(4)])]
    chain = [(f"n{i}0", f"n{i + 1}1", 2.0) for i in range(7)]
    deep = communities_of(graph(*pairs, *chain), 4, 0)
    assert {one.level for one in deep} > {0}
    by_id = {one.id: one for one in deep}
    for one in deep:
        assert not one.parent or set(one.entities) <= set(by_id[one.parent].entities)
        assert bool(one.parent) == (one.level > 0)
    assert communities_of(graph(names=["alone"]), 10, 0) == []


def test_a_report_is_written_from_the_best_connected_first():
    star = graph(("hub", "a", 1.0), ("hub", "b", 1.0), ("a", "c", 1.0))
    community = Community("C0", 0, "", ("a", "b", "c", "hub"))
    texts = Context(star, [community], 8000).of(community, {})
    assert [passage.id for passage in texts] == ["hub", "a", "R0", "b", "R1", "c", "R2"]
    assert [p.id for p in Context(star, [community], 12).of(community, {})] == ["hub", "a", "R0"]  # 4 + 4 + 3 tokens


def test_reports_take_the_place_of_parts_that_do_not_fit():
    whole = graph(("a", "b", 1.0), ("b", "c", 1.0), ("d", "e", 1.0), ("c", "d", 1.0))
    top = Community("C0", 0, "", ("a", "b", "c", "d", "e"))
    parts = [Community("C1", 1, "C0", ("a", "b", "c")), Community("C2", 1, "C0", ("d", "e"))]
    reports = {"C1": "short", "C2": "short"}
    context = {room: Context(whole, [top, *parts], room) for room in (100, 25, 3)}
    assert len(context[100].of(top, reports)) == 9  # all entities and relations
    assert context[25].of(top, reports)[0].id == "C1"
    assert not {"a", "b", "R0", "R1"} & {p.id for p in context[25].of(top, reports)}
    assert {"d", "e", "R2", "R3"} <= {p.id for p in context[25].of(top, reports)}
    assert [p.id for p in context[3].of(top, reports)] == ["C1", "C2"]
    assert [p.id for p in context[3].of(top, {})] == []


# --- the question

UNITS = [Unit(f"U{i}", f"unit {i} " + "x " * 8, f"p{i % 3}") for i in range(4)]
ENTITIES = [
    Entity("E0", "Ada: a reader", "Ada", "person", 2, ("U0", "U1")),
    Entity("E1", "Bo: a writer", "Bo", "person", 2, ("U1", "U2")),
    Entity("E2", "Ulm", "Ulm", "place", 2, ("U3",)), Entity("E3", "Cy", "Cy", "", 0, ()),
]  # fmt: skip
RELATIONS = [
    Relation("R0", "Ada - Bo", "E0", "E1", 1.0, ("U1",)), Relation("R1", "Ada - Ulm", "E0", "E2", 2.0, ("U3",)),
    Relation("R2", "Bo - Ulm", "E1", "E2", 1.0, ("U2",)),
]  # fmt: skip
REPORTS = [
    Report("C0", "whole report", 0, "", ("E0", "E1", "E2"), 2), Report("C1", "left report", 1, "C0", ("E0", "E1"), 0),
    Report("C2", "right report", 1, "C0", ("E2",), 0), Report("C3", "other report", 0, "", ("E3",), 0),
]  # fmt: skip
TABLES = {"units": rows(UNITS), "entities": rows(ENTITIES), "relations": rows(RELATIONS), "reports": rows(REPORTS)}
INDEX = index_of(TABLES)


def test_the_index_is_what_was_stored():
    assert [list(part.values()) for part in (INDEX.units, INDEX.entities, INDEX.relations, INDEX.reports)] == [
        UNITS, ENTITIES, RELATIONS, REPORTS,
    ]  # fmt: skip
    assert INDEX.relations_of["E0"] == (RELATIONS[0], RELATIONS[1]) and "E3" not in INDEX.relations_of


def test_what_is_around_entities():
    ada, bo = ENTITIES[:2]
    assert [unit.id for unit in units_around(INDEX, [ada, bo])] == ["U1", "U0", "U2"]  # U1 states Ada's relation
    assert [unit.id for unit in units_around(INDEX, [bo])] == ["U1", "U2"]
    assert [one.id for one in relations_around(INDEX, [ada, bo])] == ["R0", "R1", "R2"]  # inside, then by weight
    assert [one.id for one in relations_around(INDEX, [ada])] == ["R1", "R0"]
    assert [one.id for one in reports_around(INDEX, [ada, bo])] == ["C1", "C0"]  # of equal ones the finer
    assert reports_around(INDEX, [ENTITIES[3]]) == [REPORTS[3]] and units_around(INDEX, [ENTITIES[3]]) == []


def test_relations_that_lead_out_are_limited():
    hub = Entity("H", "hub", "hub", "", 30, ())
    others = [Entity(f"X{i}", f"x{i}", f"x{i}", "", 1, ()) for i in range(30)]
    spokes = [Relation(f"S{i}", "", "H", one.id, 1.0, ()) for i, one in enumerate(others)]
    index = Index({}, {one.id: one for one in (hub, *others)}, {one.id: one for one in spokes}, {})
    assert len(relations_around(index, [hub])) == 10


@pytest.mark.parametrize(
    ("tokens", "shown"),
    [
        (8000, "U1 U0 U2 E0 E1 R0 R1 R2 C1 C0"),
        (40, "U1 U0 E0 E1 R0 R1 C1 C0"),
        (20, "U1 E0 E1 C1"),
        (10, "U1 E0"),  # five tokens of the first unit
    ],
)
def test_shares_of_the_context(tokens, shown):
    """Half for units (10 tokens each), a tenth for reports (2), the rest for entities (4) and relations (3)."""
    around = surroundings(INDEX, ENTITIES[:2], tokens, 0.1)
    assert " ".join(passage.id for passage in around.shown()) == shown
    assert sum(count_words(unit.text) for unit in around.units) <= tokens / 2


def found(*ids):
    return tuple(Passage(id, INDEX.entities[id].text) for id in ids)


def test_local_search(play):
    played = play(graphrag, [found("E0", "E1"), "Bo"], tables=TABLES, k=2)
    (_, _), (_, asked), (_, answered) = played.asks
    assert (asked.text, asked.k, asked.among) == ("Who wrote the book that Ada Moss read?", 2, "entities")
    assert played.names == ["Prepared", "Retrieve", "local"] and played.answer.text == "Bo"
    assert [(p.id, p.text.count("unit")) for p in played.answer.passages] == [("p1", 1), ("p0", 1), ("p2", 1)]
    assert answered.prompt.passages[0].id == "U1"


@pytest.mark.parametrize(
    ("variant", "k", "tokens", "reports"), [("paper", 10, 8000, 0.1), ("official", 20, 12000, 0.15)]
)
def test_sizes_of_the_variants(variant, k, tokens, reports, play, monkeypatch):
    sizes = []
    monkeypatch.setattr(
        "lm_eval_rag.methods.graphrag.surroundings", lambda *given: (sizes.append(given[2:]), surroundings(*given))[1]
    )
    played = play(graphrag, [found("E0"), "Bo"], tables=TABLES, variant=variant)
    assert played.asks[1][1].k == k and sizes == [(tokens, reports)]


def test_local_search_without_an_entity_abstains(play, abstains):
    assert abstains(play(graphrag, [()], tables=TABLES).answer, "nothing retrieved")


def test_global_search_maps_and_reduces(play):
    def replies(name, ask):
        if name == "map":
            return {"left": "80\nBo", "right": "Helpfulness: 0\nnothing", "other": "95/100. Cy"}[
                ask.prompt.passages[0].text.split()[0]
            ]
        return "The answer is Cy."

    played = play(graphrag, replies, tables=TABLES, search="global", level=1, context_tokens=3)
    assert played.names == ["Prepared", "map", "map", "map", "reduce"]
    assert "Answers of readers:\nCy\nBo\n" in played.prompts("reduce")[0]
    assert (played.answer.text, played.answer.passages, played.answer.notes) == ("Cy", (), ())


@pytest.mark.parametrize(
    ("reply", "notes"),
    [
        ("0", ("no helpful report",)), ("I think so", ("helpfulness unparsed", "no helpful report")),
        ("50", ("no helpful report",)),
    ],
)  # fmt: skip
def test_global_search_without_help_abstains(reply, notes, play, abstains):
    answer = play(graphrag, lambda name, ask: reply, tables=TABLES, search="global").answer
    assert abstains(answer, notes[-1]) and answer.notes == notes


def test_global_search_without_reports_abstains(play, abstains):
    empty = {**TABLES, "reports": []}
    assert abstains(play(graphrag, [], tables=empty, search="global").answer, "no reports")


@pytest.mark.parametrize(("level", "ids"), [(0, ["C0", "C3"]), (1, ["C1", "C2", "C3"]), (5, ["C1", "C2", "C3"])])
def test_reports_of_a_level(level, ids):
    """And those of communities above it that are divided no further."""
    assert [report.id for report in reports_at(INDEX, level)] == ids


def test_batches_hold_all_reports_in_a_seeded_order():
    reports = [Report(f"C{i}", "w " * (1 + i % 4), 0, "", (), 0) for i in range(30)]
    parts = batches(reports, 6, 3)
    assert sorted(r.id for part in parts for r in part) == sorted(r.id for r in reports)
    assert all(sum(len(r.text.split()) for r in part) <= 6 for part in parts) and parts == batches(reports, 6, 3)
    assert [r.id for part in parts for r in part] == [r.id for r in random.Random(3).sample(reports, 30)]
    assert [len(part) for part in batches(reports[3:4] * 1, 2, 0)] == [1]  # too long for any batch


@pytest.mark.parametrize(
    ("reply", "partial"),
    [
        ("80\nBo wrote it.", Partial("Bo wrote it.", 80)), ("Helpfulness: 7 Bo", Partial("Bo", 7)),
        ("0", Partial("", 0)),
        ("**95/100** - Bo", Partial("** - Bo", 95)), ("999: Bo", Partial("Bo", 100)), ("Bo", None), ("", None),
        ("1984 is the book", None),
    ],
)  # fmt: skip
def test_helpfulness_is_read(reply, partial):
    assert partial_of(reply) == partial


def test_the_most_helpful_answers_as_far_as_they_fit():
    partials = [
        Partial("one two", 5),
        Partial("three", 50),
        Partial("", 99),
        Partial("four", 0),
        Partial("five six", 5),
    ]
    assert [one.text for one in most_helpful(partials, 100)] == ["three", "one two", "five six"]
    assert [one.text for one in most_helpful(partials, 3)] == ["three", "one two"]


# --- whole runs


class Writer:
    """The world above behind the generator's methods."""

    fingerprint, batch = "writer", 4

    def __init__(self, killed_at=None):
        self.prompts, self.killed_at = [], killed_at

    def generate(self, prompts, decoding, samples):
        if self.killed_at is not None and len(self.prompts) >= self.killed_at:
            raise RuntimeError("killed")
        self.prompts += prompts
        return [self._reply(prompt) for prompt in prompts]

    @staticmethod
    def _reply(prompt):
        if prompt.endswith("\nRecords:"):
            return WORLD[prompt.rpartition("Text: ")[2].partition("\n")[0]]
        ends = {
            "Missing records:": "none",
            "Description:": "One description.",
            "Report:": "A report.",
            "Helpfulness:": "60\nBo",
        }
        return next((reply for end, reply in ends.items() if prompt.endswith(end)), "Bo")

    def count_tokens(self, text):
        return len(text.split())

    def room(self, max_tokens):
        return None


@pytest.fixture
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("LM_EVAL_RAG_CACHE", str(tmp_path / "cache"))


@pytest.mark.parametrize("search", ["local", "global"])
def test_from_a_corpus_to_answers(own_cache, search):
    first, second = Writer(), Writer()
    options = {"corpus": PASSAGES, "search": search}
    results = run(graphrag, ["Whom does Ada read?"], generator=first, **options)
    answer, trace = results[0]
    assert answer.text == "Bo" and trace.count("Generate") == (1 if search == "local" else 2)
    assert {p.id for p in answer.passages} == ({"p0", "p1", "p2"} if search == "local" else set())
    assert run(graphrag, ["Whom does Ada read?"], generator=second, **options)[0][0] == answer
    assert len(first.prompts) - len(second.prompts) == 12  # 4 extractions, 4 gleanings, 3 descriptions, a report


def test_a_killed_preparation_goes_on(own_cache, tmp_path):
    killed, again = Writer(killed_at=6), Writer()
    options = {"corpus": PASSAGES, "journal": tmp_path / "run.sqlite"}
    with pytest.raises(RuntimeError, match="killed"):
        run(graphrag, ["Whom does Ada read?"], generator=killed, **options)
    run(graphrag, ["Whom does Ada read?"], generator=again, **options)
    assert not set(killed.prompts) & set(again.prompts) and len(killed.prompts) + len(again.prompts) == 13


def test_another_retriever_opens_the_same_graph(own_cache):
    run(graphrag, ["Ada"], generator=Writer(), corpus=PASSAGES)
    run(graphrag, ["Ada"], generator=(other := Writer()), corpus=PASSAGES, retriever="static")
    assert len(other.prompts) == 1


def test_what_is_missing_is_said_before_any_call(own_cache, monkeypatch):
    monkeypatch.setattr("lm_eval_rag.harness.common.extras.find_spec", lambda name: None)
    with pytest.raises(UserError, match="The method graphrag needs graspologic_native, which is not installed"):
        run(graphrag, ["Ada"], generator=(generator := Writer()), corpus=PASSAGES)
    assert generator.prompts == []


def test_the_version_names_the_prompts():
    """A product follows from these prompts: whoever changes one changes the version, and this digest."""
    wording = wordings("graphrag")
    texts = "".join(
        f"{wording[step].template}{wording[step].text}" for step in ("extract", "glean", "describe", "report")
    )
    assert VERSION.rpartition(".")[0] == wording["extract"].template.version
    assert sha256(texts.encode()).hexdigest()[:12] == "2d3edd745f95"
