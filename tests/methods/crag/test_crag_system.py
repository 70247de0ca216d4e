"""Whole methods, played: the exact sequence of asks for every switch, and every way out."""

from importlib.resources import files
from typing import Any

import pytest

from lm_eval_rag.harness.common.errors import CallError, UserError
from lm_eval_rag.harness.core.parameters import bind, defaults
from lm_eval_rag.harness.core.types import Query
from lm_eval_rag.methods.crag.crag_prompts import own_examples
from lm_eval_rag.methods.crag_hybrid import crag_hybrid
from lm_eval_rag.methods.crag_kg_baseline import crag_kg_baseline
from lm_eval_rag.methods.crag_llm_baseline import crag_llm_baseline
from lm_eval_rag.methods.crag_rag_baseline import crag_rag_baseline

SWITCHES = ("chunk_extraction", "prompt_refinement", "attribute_predictor", "table_extractor", "calculator",
            "reasoning", "false_premise", "knowledge_extractor", "knowledge_graph")  # fmt: skip
NONE: dict[str, Any] = dict.fromkeys(SWITCHES, False)
FIELDS = '{"domain": "movie", "movie_name": "lantern", "movie_aspect": "budget"}'
HIT = [{"title": "Lantern", "budget": 3}]
RANKS = ((0, 2.0), (1, 1.0))
WHOLE = ["HasGraph", "static_or_dynamic", "fields", "movie_get_movie_info", "Retrieve", "Pages", "Rank", "calculator",
         "Calculate", "knowledge", "reasoning_false_premise"]  # fmt: skip


def gathered(web: Any, found: Any) -> tuple[Any, ...]:
    """Replies up to the reasoning."""
    return ("static", FIELDS, HIT, found, web, RANKS, "8 - 3", "## Answer: 5 million")


def test_the_whole_system(play: Any, query: Query, web: Any, found: Any, form: Any) -> None:
    played = play(crag_hybrid(query), *gathered(web, found), form("5 million"))
    assert played.names == WHOLE
    answer = played.result
    assert (answer.text, answer.abstained, answer.passages, answer.notes) == ("5 million", False, found, ())
    shown = played.prompt("reasoning_false_premise")
    parts = ("graph: Lantern budget: 3", "Calculation: 8 - 3 = 5", "memory: 5 million", "Text: It had",
             "Table: Page name: Lantern",
             "Asked on: 2024-02-28T10:04:54-08:00 (Wednesday)", query.text)  # fmt: skip
    places = [shown.index(part) for part in parts]
    assert places == sorted(places)


def test_table_5s_values_are_the_defaults() -> None:
    given = defaults(crag_hybrid)
    assert (given["k"], given["table_length"], given["demonstrations"], given["samples"], given["graph_length"]) == (
        10, 4000, 5, 5, 1000,
    )  # fmt: skip
    assert all(given[switch] is True for switch in SWITCHES)


def test_the_graph_is_asked_in_three_ways_only() -> None:
    bind(crag_hybrid, {"graph": "calls"})
    with pytest.raises(UserError, match=r"Unknown value of graph 'query'.*Allowed: calls, published, rules"):
        bind(crag_hybrid, {"graph": "query"})


def test_a_dynamic_question_is_declined(play: Any, query: Query) -> None:
    played = play(crag_hybrid(query), "dynamic")
    assert played.names == ["HasGraph", "static_or_dynamic"]
    assert (played.result.text, played.result.abstained, played.result.notes) == ("I don't know", True, ("dynamic",))


def test_a_dynamic_question_is_answered_by_option(play: Any, query: Query, web: Any, found: Any, form: Any) -> None:
    replies = ("dynamic", *gathered(web, found)[1:], form("5"))
    played = play(crag_hybrid(query, dynamic="answer"), *replies)
    assert (played.names, played.result.text, played.result.notes) == (WHOLE, "5", ("dynamic",))


@pytest.mark.parametrize(
    ("last", "text", "names", "notes"),
    [
        (lambda form: [form("5 million", "yes")], "invalid question", [], ()),
        (lambda form: [form("I'm sorry, I don't know.", "yes")], "I don't know", [], ()),
        (lambda form: [form("Invalid question")], "invalid question", [], ()),
        (lambda form: [form("5 million", "perhaps")], "5 million", [], ("false premise unparsed",)),
        (lambda form: ["It earned 5 million.", "5 million"], "5 million", ["summary"], ("answer unparsed",)),
        (
            lambda form: ["It earned 5 million.", " \n"],
            "I don't know",
            ["summary"],
            ("answer unparsed", "blank answer"),
        ),
        (lambda form: ["..." * 999, "I don't know, sorry"], "I don't know", ["summary"], ("answer unparsed",)),
        (lambda form: [""], "I don't know", [], ("answer unparsed", "blank answer")),
    ],
)
def test_ways_out(
    play: Any, query: Query, web: Any, found: Any, form: Any, last: Any, text: str, names: Any, notes: Any
) -> None:
    played = play(crag_hybrid(query), *gathered(web, found), *last(form))
    assert (played.result.text, played.names, played.result.notes) == (text, WHOLE + names, notes)


def test_every_fallback_is_named_and_nothing_is_found(play: Any, query: Query, form: Any) -> None:
    replies = ("?", "no JSON", (), (), "9**9**9", "blah", form("I don't know"))
    played = play(crag_hybrid(query), *replies)
    assert played.names == [name for name in WHOLE if not name.startswith("movie") and name != "Rank"]  # no table
    assert played.result.notes == (
        "static_or_dynamic unparsed",
        "graph unparsed",
        "calculation refused: too large",
        "knowledge unparsed",
    )
    assert "Calculation:" not in played.prompt("reasoning_false_premise")


def test_a_graph_that_fails_is_a_note(play: Any, query: Query, web: Any, found: Any, form: Any) -> None:
    replies = ("static", FIELDS, CallError("this task has no graph"), *gathered(web, found)[3:], form("5"))
    played = play(crag_hybrid(query), *replies)
    assert (played.result.text, played.result.notes, played.names) == ("5", ("graph call failed",), WHOLE)
    assert "knowledge graph" not in played.prompt("reasoning_false_premise")


def test_without_a_graph_the_model_is_not_asked_for_lookups(
    play: Any, query: Query, web: Any, found: Any, form: Any
) -> None:
    played = play(crag_hybrid(query), "static", *gathered(web, found)[3:], form("5"), graph=False)
    assert played.names == [name for name in WHOLE if name not in ("fields", "movie_get_movie_info")]
    assert (played.result.text, played.result.notes) == ("5", ())
    played = play(crag_kg_baseline(query), web, ((1, 2.0),), "3 million", graph=False)
    assert played.names == ["HasGraph", "Pages", "Rank", "baseline"]


@pytest.mark.parametrize("switch", SWITCHES)
def test_each_switch_takes_its_asks_out(play: Any, query: Query, web: Any, found: Any, form: Any, switch: str) -> None:
    replies = {
        "static_or_dynamic": "static", "fields": FIELDS, "movie_get_movie_info": HIT, "Retrieve": found, "Pages": web,
        "Rank": RANKS, "calculator": "8 - 3", "knowledge": "## Answer: 5", "reasoning_false_premise": form("5"),
    }  # fmt: skip
    gone = {
        "attribute_predictor": ["static_or_dynamic"], "table_extractor": ["Pages", "Rank"],
        "calculator": ["calculator", "Calculate"],
        "knowledge_extractor": ["knowledge"], "knowledge_graph": ["HasGraph", "fields", "movie_get_movie_info"],
    }.get(switch, [])  # fmt: skip
    expected = [name for name in WHOLE if name not in gone]
    instead = {"reasoning": "refined_false_premise", "false_premise": "reasoning"}.get(switch)
    if instead:
        expected[-1] = instead
        replies[instead] = form("5", None) if switch == "false_premise" else "5"
    if switch == "chunk_extraction":
        place = expected.index("Retrieve")
        expected[place : place + 1] = ["Pages", "Rank"]
    told = [replies[name] for name in expected if name not in ("Calculate", "HasGraph")]
    played = play(crag_hybrid(query, **{switch: False}), *told)
    assert (played.names, played.result.text) == (expected, "5")


@pytest.mark.parametrize(
    ("on", "prompt"),
    [((), "baseline"), (("prompt_refinement",), "refined"),
     (("prompt_refinement", "false_premise"), "refined_false_premise"),
     (("reasoning",), "reasoning"), (("reasoning", "false_premise"), "reasoning_false_premise")],
)  # fmt: skip
def test_the_ladders_prompts(play: Any, query: Query, web: Any, on: Any, prompt: str) -> None:
    plan = crag_hybrid(query, **{**NONE, **dict.fromkeys(on, True)})
    played = play(plan, web, ((0, 1.0),), "## Answer: 5\n## False Premise: no" if "reasoning" in on else " 5\n")
    assert (played.names, played.result.text) == (["Pages", "Rank", prompt], "5")


def test_without_any_module_it_is_the_baseline(play: Any, query: Query, web: Any) -> None:
    ranked = ((1, 2.0), (0, 1.0))
    hybrid = play(crag_hybrid(query, **NONE), web, ranked, "Odile")
    baseline = play(crag_rag_baseline(query), web, ranked, "Odile")
    assert hybrid.asks == baseline.asks and hybrid.result == baseline.result


def test_the_graph_first(play: Any, query: Query, web: Any, found: Any, form: Any) -> None:
    played = play(crag_hybrid(query, graph_first=True), "static", FIELDS, HIT, form("3 million"))
    assert (played.names, played.result.text) == ([*WHOLE[:4], WHOLE[-1]], "3 million")
    replies = ("static", FIELDS, HIT, form("I don't know"), *gathered(web, found)[3:], form("5"))
    played = play(crag_hybrid(query, graph_first=True), *replies)
    assert (played.names, played.result.notes) == ([*WHOLE[:4], WHOLE[-1], *WHOLE[4:]], ("graph without answer",))
    nothing = play(crag_hybrid(query, graph_first=True), "static", "{}", *gathered(web, found)[3:], form("5"))
    assert nothing.names == [name for name in WHOLE if not name.startswith("movie")]


@pytest.mark.parametrize(
    ("domain", "expected"),
    [
        ("open", ["Retrieve", "Pages", "Rank"]),
        ("finance", ["fields", "Pages", "Rank"]),
        ("movie", ["fields", "Retrieve"]),
    ],
)
def test_routing(play: Any, query: Query, web: Any, found: Any, form: Any, domain: str, expected: list[str]) -> None:
    told = {"fields": "{}", "Retrieve": found, "Pages": web, "Rank": RANKS}
    plan = crag_hybrid(query, routing=True, calculator=False, knowledge_extractor=False)
    played = play(plan, "static", domain, *(told[name] for name in expected if name in told), form("5"))
    assert played.names == ["HasGraph", "static_or_dynamic", "domain", *expected, "reasoning_false_premise"]


def test_verification_is_the_last_step(play: Any, query: Query, web: Any, found: Any, form: Any) -> None:
    played = play(crag_hybrid(query, verify=True), *gathered(web, found), form("7"), "no")
    assert (played.names, played.result.text) == ([*WHOLE, "verify"], "I don't know")
    assert played.result.notes == ("unsupported",)


def test_options_of_retrieval(play: Any, query: Query, web: Any, found: Any, form: Any) -> None:
    few = {**NONE, "chunk_extraction": True, "reasoning": True}
    played = play(crag_hybrid(query, **few, rerank="generator", depth=7), found, "2", form("5", None))
    assert played.names == ["Retrieve", "rerank", "reasoning"] and played.asks[0].k == 7
    played = play(crag_hybrid(query, **few, rerank="retriever"), web, ((0, 1.0),), form("5", None))
    assert played.names == ["Pages", "Rank", "reasoning"]
    played = play(crag_hybrid(query, **few, parents=True, best_pages=2), web, ((0, 1.0),), form("5", None))
    assert played.names == ["Pages", "Rank", "reasoning"]
    few |= {"chunk_extraction": True, "table_extractor": True}
    played = play(crag_hybrid(query, **few, best_tables=1), found, web, ((0, 1.0),), form("5", None))
    assert played.names == ["Retrieve", "Pages", "Rank", "reasoning"]


def test_a_failed_generation_leaves_the_question_unscored(play: Any, query: Query) -> None:
    with pytest.raises(CallError, match="500"):
        play(crag_hybrid(query), "static", CallError("500"))


def test_the_baselines(play: Any, query: Query, web: Any) -> None:
    played = play(crag_llm_baseline(query), "Hm. I don't know")
    assert (played.names, played.result.text, played.result.abstained) == (["baseline"], "I don't know", True)
    assert "references alone" not in played.prompt("baseline")
    played = play(crag_rag_baseline(query), web, ((1, 2.0),), "3 million\n because")
    assert (played.names, played.result.text) == (["Pages", "Rank", "baseline"], "3 million because")
    assert played.asks[1].k == 20 and "references alone" in played.prompt("baseline")
    assert [p.text for p in played.result.passages] == ["It had a budget of 3 million."]
    played = play(crag_kg_baseline(query), FIELDS, HIT, web, ((1, 2.0),), "3 million")
    assert played.names == ["HasGraph", "fields", "movie_get_movie_info", "Pages", "Rank", "baseline"]
    assert "Lantern budget: 3" in played.prompt("baseline")
    played = play(crag_rag_baseline(query), (), "")
    without_pages = "no pages come with the question: answered without them"
    assert (played.result.text, played.result.notes) == ("I don't know", (without_pages, "blank answer"))


def test_another_whole_file(play: Any, query: Query, web: Any, tmp_path: Any) -> None:
    ours = (files("lm_eval_rag.methods.crag") / "prompts.toml").read_text(encoding="utf-8")
    file = tmp_path / "own.toml"
    file.write_text(
        ours.replace("Answer the question with the references", "In my words, with the references"), "utf-8"
    )
    played = play(crag_rag_baseline(query, prompt_file=str(file)), web, ((1, 2.0),), "3 million")
    prompt = played.asks[-1].prompt
    assert "In my words, with the references" in prompt.render() and prompt.template.version == "crag-3"


def test_a_file_may_leave_out_what_it_does_not_change(play: Any, query: Query, web: Any, tmp_path: Any) -> None:
    file = tmp_path / "own.toml"
    file.write_text('[baseline]\nanswer = "In short:"\n[demonstrations.domain]\nmusic = ["who sang?"]\n', "utf-8")
    (plain,) = [play(crag_rag_baseline(query), web, ((1, 2.0),), "3").asks[-1].prompt]
    (changed,) = [play(crag_rag_baseline(query, prompt_file=str(file)), web, ((1, 2.0),), "3").asks[-1].prompt]
    assert changed.render() == plain.render().removesuffix("Answer:") + "In short:"
    assert changed.template.version.startswith("crag-3+") and len(changed.template.version) == len("crag-3+") + 8
    assert own_examples("domain", str(file)) == {"music": ["who sang?"]}
    assert own_examples("static_or_dynamic", str(file)) == own_examples("static_or_dynamic", None)


@pytest.mark.parametrize(
    ("content", "error"),
    [
        ("version = 1", r"version = 1 is not allowed: give a text"),
        (
            "[baseline]\ninstructions = 'x'",
            r"\[baseline\] may have the texts answer, closed, instruction, reminder; found instructi",
        ),
        ("[baseline]\ninstruction = 3", r"\[baseline\] may have the texts"),
        ("baseline = 'x'", r"\[baseline\] may have the texts answer, closed, instruction, reminder; found 'x'"),
        ("[refind]\ninstruction = 'x'", r"Unknown prompt in .*'refind'. Did you mean 'refined'"),
        ("[demonstrations]\ndomain = ['x']", r"\[demonstrations\] holds lists of questions by label"),
        ("[demonstrations.domain]\nmusic = [3]", r"\[demonstrations\] holds lists of questions by label"),
        ("[examples]\ncalls = [{asked = 'x'}]", r"\[examples\] holds a list of calls"),
        ("[[examples.calls]]\nasked=''\nquestion=''\nreply='{'", r"\[examples\] holds a list of calls"),
        ("version = ", "is not a TOML text"),
        (None, "does not exist"),
    ],
)
def test_a_bad_prompt_file_is_refused(content: str | None, error: str, play: Any, query: Query, tmp_path: Any) -> None:
    bad = tmp_path / "bad.toml"
    if content is not None:
        bad.write_text(content, encoding="utf-8")
    with pytest.raises(UserError, match=error):
        play(crag_llm_baseline(query, prompt_file=str(bad)))
