"""The subject that a question names, among those of the retrieved facts."""

import pytest

from lm_eval_rag import Passage
from lm_eval_rag.harness.plugin.engine import run
from lm_eval_rag.harness.rules.guided import NO_SUBJECT, facts_about

FACTS = [("Norn", "has the capital", "Vale"), ("Norn Bay", "lies in", "Alba"), ("The Who", "lives in", "Ree")]
FACTS += [("Police (Alba)", "arrests", "Bo"), ("Alba", "has the capital", "Burg"), ("a-ha", "wins", "a prize")]
PASSAGES = [Passage(f"d{i}", " ".join(fact), fact=fact) for i, fact in enumerate(FACTS)]
DOCUMENTS = [dict(zip(("subject", "relation", "object"), fact, strict=True)) for fact in FACTS]
RULE = {"head": "seat of government", "body": "has the capital"}


@pytest.mark.parametrize(
    ("question", "answers"),
    [
        ("What is Norn's capital?", ["Vale"]),
        ("What is norn\N{RIGHT SINGLE QUOTATION MARK}s capital?", ["Vale"]),
        ("For Norn, name the capital.", ["Vale"]),
        ("capital of NORN", ["Vale"]),
        ("Where is norn bay?", ["Alba"]),  # the longest
        ("Whom do the police (alba) arrest?", ["Bo"]),
        ("Whom does the army (Alba) arrest?", []),  # Alba says which army
        ("Who plays in Norna, gonjeshk-ha or Who's Next?", []),  # whole words, of the whole name
        ("What is norn's link to Alba in law?", ["Burg"]),  # as it is written goes first
        ("what does norn has the capital ?", []),  # the benchmark's form has names as the documents do
        ("what does Norn has the capital ?", ["Vale"]),
    ],
)
def test_a_subject_is_found_as_it_is_written_or_as_whole_words(question: str, answers: list[str]) -> None:
    assert [answer for _, answer, _ in facts_about(question, PASSAGES)] == answers


def test_the_object_is_found_in_the_same_way() -> None:
    assert facts_about("What has vale's court?", PASSAGES, inverse=True) == [("has the capital", "Norn", None)]


@pytest.mark.parametrize("method", ["copy_vote", "rule_vote"])
def test_the_votes_find_it_and_say_if_no_fact_is_about_it(method: str) -> None:
    from lm_eval_rag._register import method_of

    questions = ["What is norn's seat of government?", "What is the seat of government of Kell?"]
    (found, _), (none, _) = run(method_of(method), questions, corpus=DOCUMENTS, rules=[RULE])
    assert (found.text, found.notes) == ("Vale", ())
    assert (none.text, none.abstained, none.notes) == ("", True, (NO_SUBJECT,))
