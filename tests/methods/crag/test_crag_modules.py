"""Each module alone: every branch, with the exact asks."""

from typing import Any

import pytest

from lm_eval_rag.harness.common.errors import CallError
from lm_eval_rag.harness.core.asks import Calculate, Generate, Rank, Retrieve
from lm_eval_rag.harness.core.types import Answer, Passage, Query
from lm_eval_rag.methods.crag.attribute_predictor import predict
from lm_eval_rag.methods.crag.calculator import calculations
from lm_eval_rag.methods.crag.chunks import best_chunks, best_sentences
from lm_eval_rag.methods.crag.corner_cases import settle, summarise
from lm_eval_rag.methods.crag.extractor import own_knowledge
from lm_eval_rag.methods.crag.knowledge_graph import facts
from lm_eval_rag.methods.crag.reasoning import read_premise, read_reasoning
from lm_eval_rag.methods.crag.references import References, within
from lm_eval_rag.methods.crag.rerank import reranked
from lm_eval_rag.methods.crag.verify import verified

NO = {"prompt_file": None}
VOTING = {"svm": None, "shots": 5, "shots_file": None, "samples": 5, "temperature": 0.7, "seed": 0, "prompt_file": None}


@pytest.mark.parametrize(
    ("replies", "label", "notes"),
    [
        (("static", "dynamic", "Dynamic.", "dynamic", "static"), "dynamic", []),
        (("static", "dynamic", "dynamic", "static", "?"), "static", []),  # a tie: the first to come
        (("It is static.", "", "", "", "dynamic or static"), "static", []),
        (("", "no idea", "statistic", "dynamics", "42"), "static", ["static_or_dynamic unparsed"]),
    ],
)
def test_attributes_by_votes(play: Any, query: Query, replies: Any, label: str, notes: list[str]) -> None:
    told: list[str] = []
    played = play(predict(query, "static_or_dynamic", told, **VOTING), replies)
    assert (played.result, told, played.names) == (label, notes, ["static_or_dynamic"])
    (ask,) = played.asks
    assert (ask.n, ask.temperature) == (5, 0.7)
    text = played.prompt("static_or_dynamic")
    assert (
        text.count("Static or dynamic:") == 6
        and f"Question: {query.text}\n\nRemember the rule: choose one of static, dynamic" in text
    )


def test_demonstrations_are_seeded_and_the_domain_has_aliases(play: Any, query: Query) -> None:
    texts = []
    for seed in (0, 0, 1):
        told: list[str] = []
        played = play(
            predict(query, "domain", told, **{**VOTING, "seed": seed}), ("Films", "movies", "movie", "open", "")
        )
        assert played.result == "movie" and not told
        texts.append(played.prompt("domain"))
    assert texts[0] == texts[1] != texts[2]
    assert play(predict(query, "domain", [], **{**VOTING, "shots": 99}), "").result == "open"


def test_attributes_by_a_trained_machine(play: Any, query: Query) -> None:
    played = play(predict(query, "static_or_dynamic", [], **{**VOTING, "svm": "folder"}), "dynamic")
    assert (played.result, played.names) == ("dynamic", ["classify static_or_dynamic"])
    assert played.asks[0].text == query.text and played.asks[0].model == "folder"


def test_calculator(play: Any, query: Query, found: tuple[Passage, ...]) -> None:
    told: list[str] = []
    replies = ("8 - 3", "```python\n8 - 3\n```", "print(8/3)", "", "import os")
    references = References(found, ("| 1994 | 8 |",))
    played = play(calculations(query, references, told, samples=5, temperature=0.5, **NO), replies)
    assert played.result == ("8 - 3 = 5", "8/3 = 2.66666666667")
    assert told == ["calculation refused: not an expression"]
    assert played.names == ["calculator", "Calculate", "Calculate", "Calculate"]
    assert (played.asks[0].n, played.asks[0].temperature) == (5, 0.5)
    assert "Text: It had a budget" in played.prompt("calculator") and "Table: | 1994 | 8 |" in played.prompt(
        "calculator"
    )


def test_the_calculator_shows_its_own_result_and_no_number_alone(play: Any, query: Query) -> None:
    """A wrong result of the model must not stand among the references, nor a number that nobody calculated."""
    told: list[str] = []
    replies = ("5*3 = 16", "Expression: 5*3", "12", "answer: 12", "total = 1,234 + 1 = 1236", "a = 5\nb = 3\na*b")
    played = play(calculations(query, References(), told, samples=6, temperature=0.5, **NO), replies)
    assert played.result == ("5*3 = 15", "1234 + 1 = 1235")
    assert told == ["nothing to calculate"] * 3


@pytest.mark.parametrize("reply", ["", "  \n ", "''", "None", "N/A", "``` \n```"])
def test_calculator_without_an_expression_reckons_nothing(play: Any, query: Query, reply: str) -> None:
    told: list[str] = []
    played = play(calculations(query, References(), told, samples=3, temperature=0.5, **NO), reply)
    assert (played.result, told, played.names) == ((), [], ["calculator"])


@pytest.mark.parametrize(
    ("reply", "knows", "notes"),
    [
        ("## Reasoning:\n- premise?\nfine\n## Answer:\nOdile\n", "Odile (reasoning: - premise? fine)", []),
        ("## Answer: I don’t know", "", []),
        ("Sorry, I can't help\nwith that.", "Sorry, I can't help with that.", ["knowledge unparsed"]),
        ("Hm. I don't know.", "", ["knowledge unparsed"]),
        ("", "", ["knowledge unparsed"]),
    ],
)
def test_own_knowledge(play: Any, query: Query, reply: str, knows: str, notes: list[str]) -> None:
    told: list[str] = []
    played = play(own_knowledge(query, told, max_tokens=99, **NO), reply)
    assert (played.result, told, played.names) == (knows, notes, ["knowledge"])
    (ask,) = played.asks
    assert (ask.n, ask.temperature, ask.max_tokens) == (1, 0.0, 99)
    assert len(play(own_knowledge(query, [], max_tokens=9, **NO), "x " * 9999).result) <= 1000


@pytest.mark.parametrize(
    ("reply", "answer", "premise"),
    [
        (
            "===START===\n## Reasoning:\nx\n## Answer:\n1994\n## False Premise:\nno\n===END=== ## Answer: 7",
            "1994",
            False,
        ),
        ("## Answer: 1994\n## False Premise: YES.", "1994", True),
        ("**Answer:** 1994\n**False Premise:** no", "1994", False),
        ("## Answer:\n1994\n## False Premise:\nmaybe", "1994", None),
        ("## Answer:\n1994", "1994", None),
        ("## Answer:\n...\n## Answer:\ntwo\nlines\n------\n", "two lines", None),
        ("## False Premise: no\nAnswer: 3", "3", False),
    ],
)
def test_reading_the_form(reply: str, answer: str, premise: bool | None) -> None:
    read = read_reasoning(reply)
    assert read is not None and (read.answer, read_premise(reply)) == (answer, premise)


@pytest.mark.parametrize("reply", ["", "It is 1994.", "## Answer:", "## Answer:\n...", "## False Premise: no",
                                   "## Answer:\n## False Premise: no", "## Reasoning: the answer is 3",
                                   "\x00" * 50, "===END===\n## Answer: 3"])  # fmt: skip
def test_what_is_no_form(reply: str) -> None:
    assert read_reasoning(reply) is None


def test_a_reply_that_loops_is_read_at_once() -> None:
    assert read_reasoning("## Answer:\n## Answer:\n" * 20_000) is None
    read = read_reasoning("## Answer:\nx\n## False Premise:\n" * 20_000)
    assert read is not None and read.answer == "x"


@pytest.mark.parametrize(
    ("text", "invalid", "answer", "abstained", "notes"),
    [
        (" Odile ", False, "Odile", False, ()),
        ("Hm, i don't know that one", True, "I don't know", True, ()),
        ("I DON’T KNOW", None, "I don't know", True, ()),
        ("This is an Invalid question.", None, "invalid question", False, ()),
        ("Odile", True, "invalid question", False, ()),
        (" ", None, "I don't know", True, ("blank answer",)),
        ("It is not named.\nI don't\nknow.", None, "I don't know", True, ()),
        ("Odile died before.\nInvalid question", None, "invalid question", False, ()),
    ],
)
def test_settling(found: Any, text: str, invalid: bool | None, answer: str, abstained: bool, notes: Any) -> None:
    assert settle(text, References(found), [], invalid=invalid) == Answer(answer, found, None, abstained, notes)


def test_summarising(play: Any, query: Query) -> None:
    played = play(summarise(query, "x" * 9999 + "so it is 1994", max_tokens=20, **NO), "\n 1994 \nbecause")
    assert (played.result, played.names) == ("\n 1994 \nbecause", ["summary"])
    assert "so it is 1994" in played.prompt("summary") and len(played.prompt("summary")) < 5000
    assert play(summarise(query, " \n", max_tokens=20, **NO)).result == ""


def test_rules_over_the_graph(play: Any, query: Query) -> None:
    told: list[str] = []
    plan = facts(query, "rules", told, length=1000, **NO)
    hit = [{"title": "Lantern", "budget": 3}]
    played = play(
        plan,
        'Sure: {"domain": "movie", "movie_name": "lantern, salt", "movie_aspect": "budget"}',
        hit,
        CallError("down"),
    )
    assert played.names == ["fields", "movie_get_movie_info", "movie_get_movie_info"]
    assert (played.result, told) == (("Lantern budget: 3",), ["graph call failed"])
    assert "- movie: movie_name; movie_aspect (one of: budget" in played.prompt("fields")


def test_published_rules_take_the_first_hit_and_know_two_domains(play: Any, query: Query) -> None:
    reply = '{"domain": "movie", "movie_name": "salt", "movie_aspect": "budget"}'
    hits = [{"title": "Salt Lake", "budget": 1}, {"title": "Salt", "budget": 2}]
    played = play(facts(query, "published", [], length=1000, **NO), reply, hits)
    assert played.result == ("salt_budget: 1",) and "length, oscar_awards)" not in played.prompt("fields")
    told: list[str] = []
    finance = '{"domain": "finance", "market_identifier": "VLMR", "metric": "EPS"}'
    played = play(facts(query, "published", told, length=1000, **NO), finance)
    assert (played.result, told, len(played.asks)) == ((), [], 1)


def test_a_first_fact_is_cut_and_a_later_one_left_out(play: Any, query: Query) -> None:
    reply = '{"domain": "movie", "movie_name": "salt, lantern", "movie_aspect": "cast"}'
    hits = [[{"title": title, "cast": "x" * 50}] for title in ("Salt", "Lantern")]
    assert play(facts(query, "rules", [], length=20, **NO), reply, *hits).result == ("Salt cast: xxxxxxxxx",)
    assert play(facts(query, "rules", [], length=70, **NO), reply, *hits).result == ("Salt cast: " + "x" * 50,)


def test_dates_of_the_question_reach_the_rules(play: Any, query: Query) -> None:
    reply = '{"domain": "sports", "sport_type": "basketball", "team": "Ravens"}'
    played = play(facts(query, "rules", [], length=1000, **NO), reply, None, None)
    assert dict(played.asks[1].arguments)["date"] == "2024-02-28"


def test_calls_to_the_graph(play: Any, query: Query) -> None:
    told: list[str] = []
    reply = '[{"function_name": "finance_get_eps", "args": ["VLMR"]}, {"function_name": "os.system", "args": ["rm"]}]'
    played = play(facts(query, "calls", told, length=1000, domains=("finance",), **NO), reply, 1.5)
    assert (played.names, played.result) == (["calls", "finance_get_eps"], ("finance_get_eps(VLMR): 1.5",))
    assert told == ["graph call failed"]
    assert "finance_get_eps(" in played.prompt("calls") and "movie_get" not in played.prompt("calls")


@pytest.mark.parametrize(("way", "reply"), [("rules", "no JSON"), ("rules", "{}"), ("calls", "[]"), ("calls", "none")])
def test_an_unreadable_reply_asks_the_graph_nothing(play: Any, query: Query, way: Any, reply: str) -> None:
    told: list[str] = []
    played = play(facts(query, way, told, length=1000, **NO), reply)
    assert (played.result, told, len(played.asks)) == ((), ["graph unparsed"], 1)


def test_chunks(play: Any, query: Query, web: Any, found: Any) -> None:
    played = play(best_chunks(query, (), 10), found)
    assert played.asks == [Retrieve(query.text, 10)] and played.result == found
    played = play(best_chunks(query, web, 2, best_pages=1), ((1, 0.5),))
    (ask,) = played.asks
    assert isinstance(ask, Rank) and all("mineral" not in text for text in ask.texts)  # the other page fell out
    assert [(p.id, p.score) for p in played.result] == [("0.1", 0.5)]
    assert play(best_chunks(query, web[1:2], 2, best_pages=1)).result == ()


def test_children_find_their_parents(play: Any, query: Query, web: Any) -> None:
    played = play(best_chunks(query, web, 2, parents=True), ((2, 3.0), (5, 2.0), (0, 1.0)))
    (ask,) = played.asks
    assert ask.k == 8 and "Its director was Odile." in ask.texts
    assert [(p.id, p.score) for p in played.result] == [("0.0", 3.0), ("3.0", 2.0)]
    assert played.result[0].text.startswith("The lantern film came out")


def test_sentences_of_the_baseline(play: Any, query: Query, web: Any) -> None:
    played = play(best_sentences(query, web, k=3, longest=20, length=45), ((1, 2.0), (0, 1.0), (2, 0.5)))
    assert [p.text for p in played.result] == ["It had a budget of 3", "The lantern film cam"]
    assert play(best_sentences(query, web[1:2])).result == ()


OFF: dict[str, Any] = {"rerank": "off", "depth": 50, "best_pages": 0, "parents": False, "prompt_file": None}


def test_reranking_by_the_retriever(play: Any, query: Query, web: Any) -> None:
    played = play(reranked(query, 1, [], **{**OFF, "rerank": "retriever"}), web, ((0, 0.9),))
    assert played.names == ["Pages", "Rank"]
    assert len(played.result) == 1 and played.result[0].text in played.asks[1].texts
    assert play(reranked(query, 1, [], **{**OFF, "rerank": "retriever"}), ()).result == ()


@pytest.mark.parametrize(
    ("reply", "ids", "notes"),
    [("2", ["3.0", "0.0"], []), ("[2], [1]", ["3.0", "0.0"], []), ("2, 2, 9, 0", ["3.0", "0.0"], []),
     ("0", ["0.0", "3.0"], ["rerank unparsed"]), ("none of them", ["0.0", "3.0"], ["rerank unparsed"])],
)  # fmt: skip
def test_reranking_by_the_generator(play: Any, query: Query, found: Any, reply: str, ids: Any, notes: Any) -> None:
    told: list[str] = []
    played = play(reranked(query, 2, told, **{**OFF, "rerank": "generator"}), found, reply)
    assert played.names == ["Retrieve", "rerank"] and played.asks[0].k == 50
    assert ([p.id for p in played.result], told) == (ids, notes)
    assert "[1] It had a budget" in played.prompt("rerank")
    assert play(reranked(query, 2, [], **{**OFF, "rerank": "generator"}), ()).names == ["Retrieve"]


def test_what_fits() -> None:
    assert within(["abc", "de"], 0) == () and within(["abc", "de"], 4) == ("abc",) and within(["abc"], 2) == ("ab",)


@pytest.mark.parametrize(
    ("reply", "text", "notes"),
    [("Yes", "1994", ()), ("no.", "I don't know", ("unsupported",)), ("", "1994", ("verification unparsed",)),
     ("Maybe", "1994", ("verification unparsed",))],
)  # fmt: skip
def test_verification(play: Any, query: Query, found: Any, reply: str, text: str, notes: Any) -> None:
    played = play(verified(query, Answer("1994", found), References(found, memory="it was 1994"), **NO), reply)
    assert (played.result.text, played.result.notes, played.names) == (text, notes, ["verify"])
    assert played.result.abstained == (text != "1994")
    assert "Answer given: 1994" in played.prompt("verify") and "it was 1994" not in played.prompt("verify")


def test_nothing_bears_an_answer_out_without_references(play: Any, query: Query) -> None:
    played = play(verified(query, Answer("1994"), References(memory="1994"), **NO))
    assert (played.result.text, played.asks, played.result.notes) == ("I don't know", [], ("unsupported",))
    declined = Answer("I don't know", abstained=True)
    assert play(verified(query, declined, References(), **NO)).result == declined


def test_a_failed_generation_is_no_fallback(play: Any, query: Query) -> None:
    with pytest.raises(CallError):
        play(own_knowledge(query, [], max_tokens=9, **NO), CallError("500"))


def test_every_ask_ends_somewhere(play: Any, query: Query) -> None:
    played = play(calculations(query, References(), [], samples=2, temperature=0.5, **NO), "1+1")
    (asked, reckoned) = played.asks
    assert isinstance(asked, Generate) and asked.stop and asked.max_tokens and reckoned == Calculate("1+1")
