"""The embedded generator for methods of several steps: its scripted teacher, its training rows, and what it can do."""

from __future__ import annotations

import importlib
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from lm_eval_rag._register import method_of
from lm_eval_rag.harness.core.types import SHORT, Passage, Query
from lm_eval_rag.harness.plugin.engine import run
from lm_eval_rag.tasks.reasoning_demo.build import questions_of
from lm_eval_rag.tasks.reasoning_demo.questions import Reasoning
from lm_eval_rag.tasks.reasoning_demo.world import Part, make_parts

ROOT = Path(__file__).resolve().parents[3]
torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")


@pytest.fixture(scope="module")
def scripts() -> Any:
    """Imports a module of scripts/."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(ROOT / "scripts" / "tiny_steps"))
        yield importlib.import_module


@pytest.fixture(scope="module")
def part() -> Part:
    return make_parts(0)[0]


@pytest.fixture(scope="module")
def mixed() -> list[Reasoning]:
    """Test questions of all types."""
    questions = questions_of(0)["test"][:40]
    assert len({question.type for question in questions}) == 7
    return questions


def gold(part: Part, question: Reasoning) -> list[Passage]:
    """The passages of a chain, and that which lacks what a claim says."""
    titles = dict.fromkeys([*(fact.subject for fact in question.chain), *(question.missing or ())[:1]])
    pages = {page.title: page for page in part.pages}
    return [Passage(title, pages[title].text) for title in titles]


@pytest.mark.parametrize("method", ["standard_rag", "iter_retgen", "ircot", "search_agent", "think_then_act"])
def test_the_teacher_reads_gold_passages_without_error(
    scripts: Any, part: Part, mixed: list[Reasoning], method: str
) -> None:
    for question in mixed[:15]:
        teacher = scripts("teacher").Teacher(part, [question], reads=True)
        ((answer, trace),) = run(
            method_of(method),
            [Query("q", question.text, answer_form=SHORT)],
            corpus=gold(part, question),
            generator=teacher,
        )
        assert answer.text == question.answer and trace.failure is None, question
        assert answer.notes == ()


@pytest.mark.parametrize("method", ["standard_prompting", "chain_of_knowledge", "verify_and_edit", "crp_rag"])
def test_the_teacher_that_knows_the_world(scripts: Any, part: Part, mixed: list[Reasoning], method: str) -> None:
    teacher = scripts("teacher").Teacher(part, mixed, reads=False)
    corpus = [Passage(page.title, page.text) for page in part.pages]
    results = run(
        method_of(method), [Query(q.text, q.text, answer_form=SHORT) for q in mixed], corpus=corpus, generator=teacher
    )
    for question, (answer, _) in zip(mixed, results, strict=True):
        if not question.missing:  # without documents an invented fact takes the place of the missing one
            assert answer.text == question.answer, question


def test_the_honest_teacher_says_that_it_does_not_know(scripts: Any, part: Part, mixed: list[Reasoning]) -> None:
    teacher = scripts("teacher").Teacher(part, mixed, reads=True)
    results = run(
        method_of("standard_prompting"), [Query(q.text, q.text, answer_form=SHORT) for q in mixed], generator=teacher
    )
    for question, (answer, _) in zip(mixed, results, strict=True):
        assert answer.text == ("NOT ENOUGH INFO" if question.is_claim else "I don't know")


def test_the_teacher_refuses_other_prompts(scripts: Any, part: Part) -> None:
    with pytest.raises(ValueError, match="does not know this prompt"):
        scripts("teacher").Teacher(part, [], reads=True).reply("Once upon a time")


def test_baselines_do_not_solve_the_set(scripts: Any) -> None:
    table = scripts("baselines").measured()
    bounds = {
        "most common answer": 0.10, "most common answer of the type": 0.20, "first title retrieved": 0.08,
        "most named in ten passages": 0.10, "perfect reader of one retrieval": 0.36,
    }  # fmt: skip
    assert set(table) == set(bounds)
    for name, bound in bounds.items():
        assert 0 < table[name]["all"] < bound, (name, table[name])
        assert max(table[name][kind] for kind in ("bridge_3", "bridge_4")) < 0.05
    assert table["perfect reader of one retrieval"]["bridge_2"] < 0.15


def test_scenes_have_true_questions(scripts: Any) -> None:
    """Every fact of a chain is stated; most chains lie inside the scene, some outside."""
    import random

    scene, world = scripts("scenes").scene, make_parts(7)[0]
    rng, inside, types = random.Random(0), Counter[bool](), Counter[str]()
    for _ in range(40):
        titles, questions = scene(rng, world)
        assert len(set(titles)) == len(titles) <= 8
        for question in questions:
            assert all(fact in world.facts[fact.subject] for fact in question.chain)
            inside[all(fact.subject in titles for fact in question.chain)] += 1
            types[question.type] += 1
    assert inside[True] > 3 * inside[False] > 0
    assert set(types) == {"bridge_1", "bridge_2", "bridge_3", "comparison_same", "comparison_which", "intersection",
                          "claim"} | ({"bridge_4"} & set(types))  # fmt: skip


def test_rows_are_what_the_methods_send(scripts: Any, part: Part, mixed: list[Reasoning]) -> None:
    record = scripts("make_rows").record
    teacher = record("ircot", part, list(part.facts), mixed[:5], "bm25")
    steps = Counter(step for step, _, _ in teacher.rows)
    assert set(steps) <= {"ircot.thought", "ircot.cot", "iter_retgen.paper"} and steps["ircot.thought"] >= 10
    assert all("\nQuestion: " in prompt and reply for _, prompt, reply in teacher.rows)


def test_a_tree_of_rows_is_computed_as_the_rows_alone(scripts: Any) -> None:
    packing, attention = scripts("packing"), scripts("attention")
    config = transformers.LlamaConfig(
        vocab_size=50, hidden_size=32, intermediate_size=32, num_hidden_layers=2, num_attention_heads=2
    )
    torch.manual_seed(0)
    model = transformers.LlamaForCausalLM(config).eval()
    rows = [([1, 2, 3], [4, 5]), ([1, 2, 3, 4, 5, 6], [7, 0]), ([1, 2, 9], [4]), ([8, 2], [3, 0])]
    trees = [packing.Tree(), packing.Tree()]
    for number, (prompt, reply) in enumerate(rows):
        trees[number // 3].add(prompt, reply, 1.0)
    assert len(trees[0]) == 10 and sum(trees[0].weight) == 5  # five tokens begin two rows, three of them all
    batch = packing.collate(trees)
    with torch.no_grad():
        alone = {tuple(p + r): model(torch.tensor([p + r])).logits[0] for p, r in rows}
        attention.use(model)
        packed = model(
            input_ids=batch["ids"],
            attention_mask=attention.bias(batch["mask"], torch.float32),
            position_ids=batch["places"],
            use_cache=False,
        ).logits
    for number, (prompt, reply) in enumerate(rows):
        tree, at, path = trees[number // 3], -1, []
        for token in [*prompt, *reply]:
            at = next(i for i in range(len(tree)) if tree.parents[i] == at and tree.ids[i] == token)
            path.append(at)
        expected = alone[tuple(prompt + reply)]
        assert torch.allclose(packed[number // 3, path], expected, atol=1e-5)
        assert all(tree.weight[node] == 1 for node in path[len(prompt) :])
