"""Properties that every method keeps, over the registry, and what each method is for."""

import dataclasses
import inspect
import math
from pathlib import Path

import pytest
from annotated_types import Ge, Gt, Le

from lm_eval_rag._register import METHODS
from lm_eval_rag._register import method_of as method
from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.harness.core.contract import check_method
from lm_eval_rag.harness.core.parameters import check, defaults
from lm_eval_rag.harness.core.types import Passage, Query, Rule
from lm_eval_rag.harness.data.corpus import Corpus
from lm_eval_rag.harness.plugin.engine import run
from lm_eval_rag.methods.prompts import BARE, template
from lm_eval_rag.methods.reasoning.steps import STOP
from lm_eval_rag.methods.rule_vote import NO_FACTS

TOWNS = [f"Town{i} Burg" for i in range(6)]
NEEDED = {
    "external": {"function": f"{Path(__file__).parent / 'a_system.py'}:answer"}
}  # method -> what it cannot do without
TRIVIAL = ("mode_of_relation", "mode_of_subject", "last_object", "link_vote", "copy_vote")
WORDLESS = ("rule_vote", "external", *TRIVIAL)  # they have no prompts


@pytest.fixture(params=sorted(METHODS))
def name(request):
    return request.param


def answer(name, queries, corpus, generator, **parameters):
    given = {**NEEDED.get(name, {}), **parameters}
    return run(method(name), queries, corpus=corpus, generator=generator, **given)


def test_alone_or_together_is_the_same(name, queries, corpus, generator):
    together = answer(name, queries, corpus, generator)
    alone = [answer(name, [query], corpus, generator)[0] for query in queries]
    assert [a for a, _ in together] == [a for a, _ in alone]
    assert [[step.request for step in t.steps] for _, t in together] == [[s.request for s in t.steps] for _, t in alone]


def test_order_of_questions_does_not_matter(name, queries, corpus, generator):
    forwards = answer(name, queries, corpus, generator)
    backwards = answer(name, queries[::-1], corpus, generator)
    assert [a for a, _ in forwards] == [a for a, _ in backwards[::-1]]


def test_a_query_holds_no_gold_answer(name):
    allowed = {"id", "text", "time", "corpus", "repeat", "answer_form"}
    assert {field.name for field in dataclasses.fields(Query)} == allowed
    assert set(inspect.signature(method(name)).parameters) - set(defaults(method(name))) == {"query"}


def test_every_parameter_has_a_default_and_a_type(name):
    hints = inspect.get_annotations(method(name), eval_str=True)
    check_method(method(name))
    for parameter, value in defaults(method(name)).items():
        check(parameter, value, hints[parameter])


def test_no_list_of_documents_is_longer_than_memory_allows(name):
    hints = inspect.get_annotations(method(name), eval_str=True)
    for parameter in {"k", "depth", "paragraphs"} & set(hints):
        with pytest.raises(UserError, match=f"{parameter}=1000000000 is not allowed"):
            check(parameter, 10**9, hints[parameter])


def test_counts_may_not_be_zero_or_less(name, queries, corpus, generator):
    hints = inspect.get_annotations(method(name), eval_str=True)
    lowest = {n: m.ge for n, h in hints.items() for m in getattr(h, "__metadata__", ()) if isinstance(m, Ge)}
    assert lowest or not hints.keys() - {"query", "return"}
    for parameter, value in lowest.items():
        with pytest.raises(UserError, match=f"{parameter}={value - 1}"):
            answer(name, queries, corpus, generator, **{parameter: value - 1})


UNBOUNDED = {"self_rag": {"threshold", "w_relevant", "w_supported", "w_useful"}}  # below 0 it always retrieves


def test_numbers_are_finite_and_in_their_range(name, queries, corpus, generator):
    """Whole and decimal ones; a decimal one without a range is named above."""
    hints = inspect.get_annotations(method(name), eval_str=True)
    floats = {parameter: hint for parameter, hint in hints.items() if "float" in repr(hint)}
    bounds = {
        parameter: [value for bound in getattr(hint, "__metadata__", ()) for value in _beyond(bound)]
        for parameter, hint in floats.items()
    }
    assert {parameter for parameter, beyond in bounds.items() if not beyond} == UNBOUNDED.get(name, set())
    for parameter, beyond in bounds.items():
        for value in (math.nan, math.inf, -math.inf, *beyond):
            with pytest.raises(UserError, match=rf"^{parameter}={value} is not allowed: give a number"):
                answer(name, queries, corpus, generator, **{parameter: value})


def _beyond(bound):
    """The nearest numbers that a bound forbids."""
    if isinstance(bound, Ge):
        yield math.nextafter(bound.ge, -math.inf)
    elif isinstance(bound, Gt):
        yield bound.gt
    elif isinstance(bound, Le):
        yield math.nextafter(bound.le, math.inf)


@pytest.mark.parametrize(
    ("name", "parameter", "value", "allowed"),
    [
        ("crp_rag", "similarity", 5, "a number of 0 or more and of 1 or less"),
        ("crp_rag", "threshold", 0.5, "a number of 1 or more"),
        ("crp_rag", "temperature", -1, "a number of 0 or more"),
        ("raptor", "membership", 2, "a number of 0 or more and of 1 or less"),
        ("self_rag", "threshold", math.nan, "a number. It must be finite"),
        ("external", "timeout", 0, "a number above 0"),
    ],
)
def test_a_number_out_of_range_is_told_what_is_allowed(name, parameter, value, allowed, queries, corpus, generator):
    with pytest.raises(UserError) as raised:
        answer(name, queries, corpus, generator, **{parameter: value})
    assert str(raised.value) == f"{parameter}={value} is not allowed: give {allowed}."


def test_prompts_come_by_one_name(name, queries, corpus, generator):
    """``wording=`` was another name for it; whoever still gives it is told the new one."""
    assert "wording" not in defaults(method(name))
    takes = "prompt_file" in defaults(method(name))
    assert takes or name in WORDLESS
    with pytest.raises(UserError, match="is now named prompt_file=" if takes else "Unknown argument 'wording'"):
        answer(name, queries, corpus, generator, wording="mine.toml")


def test_it_names_its_source(name):
    assert inspect.getmodule(method(name)).__doc__
    assert ("Args:" in method(name).__doc__) == bool(defaults(method(name)))


def test_it_survives_questions_about_nothing(name, corpus, generator):
    odd = [Query("q0", ""), Query("q1", "what does Nobody of Nowhere do?"), Query("q2", "\x00 ? 😀")]
    results = answer(name, odd, corpus, generator)
    assert len(results) == 3 and all(trace.failure is None for _, trace in results)


def test_standard_prompting_retrieves_nothing(queries, corpus, generator):
    (first, trace), *_ = answer("standard_prompting", queries, corpus, generator)
    assert trace.count("Retrieve") == 0 and first.passages == () and "Documents" not in generator.prompts[0]


def test_standard_rag_shows_the_best_documents(queries, corpus, generator):
    (first, trace), *_ = answer("standard_rag", queries, corpus, generator, k=4, documents=2)
    assert trace.count("Retrieve") == 1 and len(first.passages) == 4
    assert generator.prompts[0].count("\nTime ") == 2 and "Rules" not in generator.prompts[0]


def test_several_samples_vote(queries, corpus):
    class Wavering:
        fingerprint, batch = "wavering", 8
        replies = (" Moor", " Vale", " vale.", " Burg", " Moor")

        def generate(self, prompts, decoding, draws):
            assert decoding.temperature == 0.5
            return [self.replies[draw] for draw in draws]

        def loglikelihood(self, pairs):
            raise AssertionError

        def count_tokens(self, text):
            return None

        def room(self, max_tokens):
            return None

    for samples, winner in ((2, "Moor"), (3, "Vale"), (4, "Vale"), (5, "Moor")):  # of two with two votes the first
        ((first, trace),) = answer("standard_rag", queries[:1], corpus, Wavering(), samples=samples, temperature=0.5)
        assert first.text.strip() == winner
        (step,) = [step for step in trace.steps if step.ask == "Generate"]
        assert len(step.finishes) == samples


def test_equal_calls_without_rules(queries, corpus, generator):
    (first, trace), *_ = answer("standard_rag", queries, corpus, generator, n_queries=3)
    assert trace.count("Retrieve") == 3 and trace.count("MatchRules") == 0
    assert len({passage.id for passage in first.passages}) == len(first.passages)


def test_rulerag_asks_once_a_rule_and_shows_the_rules(queries, corpus, generator):
    (first, trace), *_ = answer("rulerag_icl", queries, corpus, generator)
    assert [rule.body for rule in first.rules] == ["was born in", "visited"]
    assert trace.count("Retrieve") == 2
    assert "[Entity1, was born in, Entity2] leads to [Entity1, is a citizen of, Entity2]" in generator.prompts[0]


@pytest.mark.parametrize(("guide", "retrievals", "shown"), [("both", 2, 1), ("retrieval", 2, 0), ("generation", 1, 1)])
def test_each_half_alone(queries, corpus, generator, guide, retrievals, shown):
    (first, trace), *_ = answer("rulerag_icl", queries, corpus, generator, guide=guide)
    assert (trace.count("Retrieve"), generator.prompts[0].count("Rules:")) == (retrievals, shown)
    assert len(first.rules) == 2


def test_a_question_without_rules_falls_back_to_the_plain_one(corpus, generator):
    query = Query("q0", "Time 2014-06-01 what does Person0 Alba visited ?")
    ((ruled, _),) = answer("rulerag_icl", [query], corpus, generator)
    ((plain, _),) = answer("standard_rag", [query], corpus, generator)
    assert ruled.rules == () and ruled.passages == plain.passages and ruled.text == plain.text


def test_shots_are_the_same_for_all_questions_and_seeded(queries, corpus, generator):
    answer("rulerag_icl", queries, corpus, generator, shots=2, seed=1)
    heads = {prompt.rpartition("Documents:")[0] for prompt in generator.prompts}
    assert len(heads) == 1 and heads.pop().count("Question:") == 2
    before = generator.prompts.copy()
    generator.prompts.clear()
    answer("rulerag_icl", queries, corpus, generator, shots=2, seed=2)
    assert before != generator.prompts


def test_documents_are_dropped_from_the_bottom_when_room_is_short(queries, corpus, narrow):
    (_, trace), *_ = answer("standard_rag", queries, corpus, narrow)
    (step,) = [step for step in trace.steps if step.ask == "Generate"]
    first = next(s for s in trace.steps if s.ask == "Retrieve").reply.split()[0]
    assert step.dropped_passages > 0 and step.prompt_tokens <= 60
    assert corpus.texts[int(first[1:])] in step.request


class Sentences:
    """Answers in sentences over several lines; keeps its prompts."""

    fingerprint, batch = "sentences", 3

    def __init__(self):
        self.prompts = []

    def generate(self, prompts, decoding, draws):
        self.prompts += prompts
        return ["\n Vale \nbecause the documents say so." for _ in prompts]

    def count_tokens(self, text):
        return len(text.split())

    def room(self, max_tokens):
        return None


@pytest.mark.parametrize("name", ["standard_prompting", "standard_rag", "rulerag_icl", "rulerag_ft", "rulerag_gpt35"])
def test_a_short_answer_is_asked_for_and_its_first_line_taken(name, queries, corpus):
    free, short = Sentences(), Sentences()
    assert answer(name, queries, corpus, free)[0][0].text == "Vale \nbecause the documents say so."
    assert answer(name, queries, corpus, short, answer_style="short")[0][0].text == "Vale"
    for with_it, without in zip(short.prompts, free.prompts, strict=True):
        instruction, rest = without.split("\n", 1)
        assert with_it == f"{instruction} {BARE}\n{rest}"


class Reasoner(Sentences):
    """Reasons before it answers; keeps how it was asked."""

    def generate(self, prompts, decoding, draws):
        self.prompts += prompts
        self.asked = decoding
        return ["Person0 was born in Vale. So the answer is Vale. It is far." for _ in prompts]


@pytest.mark.parametrize("name", ["standard_prompting", "standard_rag"])
def test_a_chain_of_thought_before_the_answer(name, queries, corpus):
    """The control for methods that reason: as many retrievals, one call, but room to reason."""
    model = Reasoner()
    ((found, trace),) = answer(name, queries[:1], corpus, model, answer_style="cot", reasoning_tokens=99)
    assert (found.text, found.notes, found.rationale) == ("Vale", (), "Person0 was born in Vale.")
    assert trace.count("Generate") == 1 and trace.count("Retrieve") == (name == "standard_rag")
    assert (model.asked.max_tokens, model.asked.stop) == (99, STOP)
    (prompt,) = model.prompts
    assert "Think step by step" in prompt.split("\n")[0] and ("Documents:" in prompt) == (name == "standard_rag")
    ((unread, _),) = answer(name, queries[:1], corpus, Sentences(), answer_style="cot")
    assert (unread.text, unread.notes) == ("because the documents say so.", ("answer unparsed",))
    with pytest.raises(UserError, match=r"shots=2 and answer_style=cot do not go together"):
        answer(name, queries[:1], corpus, model, answer_style="cot", shots=2)


def test_a_chain_of_thought_cites_nothing_and_votes(queries, corpus):
    with pytest.raises(UserError, match=r"evidence=cite and answer_style=cot do not go together"):
        answer("standard_rag", queries[:1], corpus, Reasoner(), answer_style="cot", evidence="cite")
    ((found, trace),) = answer("standard_rag", queries[:1], corpus, Reasoner(), answer_style="cot", samples=3)
    (step,) = [step for step in trace.steps if step.ask == "Generate"]
    assert (found.text, len(step.finishes)) == ("Vale", 3)


@pytest.mark.parametrize("name", ["standard_prompting", "standard_rag"])
def test_a_task_whose_answers_are_no_entities_is_not_asked_for_one(name, queries, corpus, generator):
    """HotpotQA has answers yes and no, FEVER labels; RuleQA's answers are entities."""
    answer(name, [*queries, *(dataclasses.replace(query, answer_form="short") for query in queries)], corpus, generator)
    heads = {prompt.split("\n")[0] for prompt in generator.prompts}
    assert len(heads) == 2 and sum("the name of one entity" in head for head in heads) == 1
    assert sum("as few words as possible" in head for head in heads) == 1
    with pytest.raises(UserError, match=r"Unknown form of answer 'shrt'\. Did you mean 'short'"):
        answer(name, [dataclasses.replace(queries[0], answer_form="shrt")], corpus, generator)


def test_every_prompt_file_has_a_version_of_its_own():
    assert template(name="short_answer").version == "short_answer-1" != template().version


def test_short_prompts_are_another_version():
    """So a generator that was tuned on others refuses them."""
    assert template().version == "ruleqa-1" and template(style="short").version == "ruleqa-1+short"


def test_rule_vote_follows_the_surest_rule_without_a_generator(queries, corpus):
    results = answer("rule_vote", queries, corpus, None, recency=0.0)
    assert [a.text for a, _ in results] == TOWNS
    assert all(trace.count("Generate") == 0 for _, trace in results)


def test_the_confidence_of_a_rule_vote_is_the_share_of_its_weight():
    facts = [("Ada", "was born in", "Norn"), ("Ada", "studied in", "Vale"), ("Ada", "lives in", "Norn")]
    passages = [Passage(f"d{i}", " ".join(fact), fact=fact) for i, fact in enumerate(facts)]
    weights = {"was born in": 0.5, "studied in": 0.3, "lives in": 0.2}
    bank = [Rule("is a citizen of", body, 3, 4, weight) for body, weight in weights.items()]
    ((vote, _),) = answer(
        "rule_vote", [Query("q", "what does Ada is a citizen of ?")], Corpus.of(passages, bank), None, recency=0.0
    )
    assert vote.text == "Norn" and vote.confidence == pytest.approx((0.5 + 0.2) / (0.5 + 0.3 + 0.2))


def test_a_rule_vote_on_undated_facts_weighs_as_its_docstring_says():
    facts = [("Ada", "was born in", "Norn"), ("Ada", "studied in", "Vale")]
    passages = [Passage(f"d{i}", " ".join(fact), fact=fact) for i, fact in enumerate(facts)]
    bank = [Rule("lives in", "was born in", 9, 10, 0.9), Rule("lives in", "studied in", 1, 10, 0.1)]
    for recency, born, studied in ((0.5, 0.95, 0.55), (0.0, 0.9, 0.1), (1.0, 1.0, 1.0)):
        ((vote, _),) = answer(
            "rule_vote", [Query("q", "what does Ada lives in ?")], Corpus.of(passages, bank), None, recency=recency
        )
        assert vote.text == "Norn" and vote.confidence == pytest.approx(born / (born + studied))


def test_a_rule_vote_whose_rules_have_no_confidence_answers_without_one():
    corpus = Corpus.of(
        [Passage("d", "Ada was born in Norn", fact=("Ada", "was born in", "Norn"))],
        [Rule("is a citizen of", "was born in", 0, 0, 0.0)],
    )
    ((vote, _),) = answer("rule_vote", [Query("q", "what does Ada is a citizen of ?")], corpus, None, recency=0.0)
    assert (vote.text, vote.confidence, vote.abstained) == ("Norn", None, False)


def test_rule_vote_knows_a_subject_at_the_end_of_an_english_question():
    facts = [("Ada", "wed", "Bo"), ("Al", "wed", "Bea")]
    passages = [Passage(fact[0], " ".join(fact), fact=fact) for fact in facts]
    documents = Corpus.of(passages, [Rule("spouse", "wed", 3, 4, 0.75)])
    asked = documents.worded("english", {"spouse": "Whose spouse is {subject}?"}, Path())
    ((found, _),) = answer("rule_vote", [Query("q", "Whose spouse is Ada?")], asked, None)
    assert found.text == "Bo" and [rule.body for rule in found.rules] == ["wed"]


def test_rule_vote_abstains_without_evidence(corpus):
    ((nothing, _),) = answer("rule_vote", [Query("q", "what does Person0 Alba visited ?")], corpus, None)
    assert nothing.abstained and nothing.text == ""


def test_rule_vote_prefers_what_is_recent(corpus):
    query = Query("q", "Time 2014-02-02 what does Person0 Alba is a citizen of ?", "2014-02-02")
    ((old, _),) = answer("rule_vote", [query], corpus, None, recency=0.0)
    ((new, _),) = answer("rule_vote", [query], corpus, None, recency=1.0)
    assert (old.text, new.text) == ("Town0 Burg", "Town1 Burg")


def test_a_method_that_needs_a_generator_says_so(queries, corpus):
    with pytest.raises(UserError, match="needs Generate, which nothing serves"):
        answer("standard_rag", queries, corpus, None)


def test_rule_vote_says_that_documents_without_facts_do_not_vote():
    documents = ["Ada Moss was born in Vale.", "Vale is old."]
    ((without, _),) = run(method("rule_vote"), ["where was Ada Moss born?"], corpus=documents)
    assert without.abstained and without.notes == (NO_FACTS,)
    facts = [{"subject": "Ada Moss", "relation": "was born in", "object": "Vale"}]
    ((with_facts, _),) = run(method("rule_vote"), ["where was Ada Moss born?"], corpus=facts)
    assert with_facts.notes == ()


def test_rules_are_mined_where_a_method_is_run_by_hand():
    """The third person's country follows from the rule that two others state."""
    people = [(f"P{i}", relation, f"T{i}") for i in range(3) for relation in ("born in", "citizen of")[: 1 + (i < 2)]]
    facts = [dict(zip(("subject", "relation", "object"), fact, strict=True)) for fact in people]
    question = ["what does P2 citizen of ?"]
    for rules in ("mine", facts, [{"head": "citizen of", "body": "born in"}]):
        ((mined, _),) = run(method("rule_vote"), question, corpus=facts, rules=rules)
        assert mined.text == "T2" and mined.rules[0].body == "born in"
    ((without, _),) = run(method("rule_vote"), question, corpus=facts)
    assert without.abstained and without.rules == ()
