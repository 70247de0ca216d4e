"""The embedded generator: its size, its tokenizer, and that it reads; and the making of what it was trained on."""

from __future__ import annotations

import importlib
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from lm_eval_rag.harness.core.prompts import Prompt, load_template
from lm_eval_rag.harness.core.types import Passage, Rule

ROOT = Path(__file__).resolve().parents[3]
FOLDER = ROOT / "harness" / "generators" / "rulerag_tiny"
TEMPLATE = load_template(ROOT / "methods" / "prompts" / "ruleqa.toml")

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")


@pytest.fixture(scope="module")
def scripts() -> Any:
    """Imports a module of scripts/."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(ROOT / "scripts" / "tiny"))
        yield importlib.import_module


@pytest.fixture(scope="module")
def tiny() -> tuple[Any, Any]:
    torch.set_num_threads(1)
    tokenizer = transformers.AutoTokenizer.from_pretrained(FOLDER)
    return tokenizer, transformers.AutoModelForCausalLM.from_pretrained(FOLDER).float().eval()


def test_size(tiny: tuple[Any, Any]) -> None:
    tokenizer, model = tiny
    assert sum(parameter.numel() for parameter in model.parameters()) <= 4_000_000
    assert sum(file.stat().st_size for file in FOLDER.rglob("*")) <= 8_000_000
    assert model.config.model_type == "llama" and model.config.vocab_size == len(tokenizer)
    names = {"config.json", "generation_config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"}
    assert {file.name for file in FOLDER.iterdir()} == names | {"README.md"}


@pytest.mark.parametrize(
    "text",
    [
        "Time 2014-05-03 Citizen (Nigeria) Make an appeal or request Foreign Affairs (South Korea).",
        "naïve Ærøskøbing Đặng Łódź ﬁ  two  spaces\ttab\r\nline",
        "東京 Москва عمان हिन्दी 👩‍🚀🏳️‍🌈 e\u0301\u0323 \u200b\ufeff \x00\x7f",
        " leading, trailing -31 --05 12345678 ٣٤ ²½ ",
        "",
    ],
)
def test_tokenizer_round_trip(tiny: tuple[Any, Any], text: str) -> None:
    tokenizer, _ = tiny
    ids = tokenizer(text, add_special_tokens=False).input_ids
    assert tokenizer.decode(ids) == text
    assert tokenizer.convert_tokens_to_ids("<|end|>") not in ids


def test_it_reads(tiny: tuple[Any, Any], scripts: Any) -> None:
    """100 prompts of names and relations it never saw: four documents with four objects, asked for one of them.

    Exact match measured on the shipped weights: 0.80. Baselines that do not read, on the same prompts: the first
    document's object 0.19, the best of the four places 0.29.
    """
    measure = scripts("measure_tiny")
    drawn = measure.draw(100, 4, False, 0.3, True)
    gold = [exercise.asked[-1].answer for exercise in drawn]
    prompts = [exercise.shared(TEMPLATE) + exercise.own(TEMPLATE, exercise.asked[-1]) for exercise in drawn]
    places = Counter(
        place
        for exercise, answer in zip(drawn, gold, strict=True)
        for place, doc in enumerate(exercise.docs)
        if doc.object == answer
    )
    read = sum(a == b for a, b in zip(measure.answers(*tiny, prompts), gold, strict=True)) / len(drawn)
    blind = max(places.values()) / len(drawn)
    assert read >= 0.72 and read > blind + 0.3, (read, blind)


def test_it_answers_without_documents(tiny: tuple[Any, Any], scripts: Any) -> None:
    (text,) = scripts("measure_tiny").answers(
        *tiny, [Prompt(TEMPLATE, "Time 2031-02-03 what does Senate (Korvast) praised ?").render()]
    )
    assert text and "\n" not in text


def test_exercises_are_rendered_as_the_methods_render(scripts: Any) -> None:
    sampler = scripts("tiny_prompts").Sampler(1)
    for _ in range(30):
        exercise = sampler.exercise()
        for asked in exercise.asked:
            rules = tuple(Rule(head=asked.relation, body=body) for body in asked.bodies)
            passages = tuple(Passage(str(place), doc.text) for place, doc in enumerate(exercise.docs))
            whole = exercise.shared(TEMPLATE) + exercise.own(TEMPLATE, asked)
            if not exercise.shots:
                assert whole == Prompt(TEMPLATE, asked.text, passages, rules).render()
            assert bool(rules) == exercise.guided


def test_vote(scripts: Any) -> None:
    """The label's rule: relation before rule before recency; without evidence the first document."""
    module = scripts("tiny_prompts")
    docs = [module.Doc(*fact.split("|")) for fact in ("2001|A|r|x", "2002|A|b|y", "2003|A|b|y", "2004|C|r|z")]
    assert module.answer_of(docs, "A", "r", ()) == "x"
    assert module.answer_of(docs, "A", "r", ("b",)) == "y"  # 0.8 * 2 and the later ones, against 1
    assert module.answer_of(docs, "A", "q", ("r", "b")) == "y"
    assert module.answer_of(docs[:2], "A", "q", ("r", "b")) == "y"  # 0.7 * 1.25 against 0.8
    assert module.answer_of(docs[:2], "A", "q", ("r", "p", "b")) == "x"  # 0.8 against 0.6 * 1.25
    assert module.answer_of(docs, "Nobody", "r", ()) == "x"
    assert module.answer_of([], "Senate (Korvast)", "r", ()) == "Korvast"


def test_questions_of_a_row_do_not_see_each_other(tiny: tuple[Any, Any], scripts: Any) -> None:
    """The block mask: a question's answer is as likely in company as alone."""
    tokenizer, model = tiny
    batches, prompts = scripts("tiny_batches"), scripts("tiny_prompts")
    exercise = prompts.Sampler(3).exercise(docs=6)
    assert len(exercise.asked) > 1
    tokenizer.backend_tokenizer.no_padding()  # which an earlier call may have left on
    row = batches.encode(exercise, TEMPLATE, tokenizer.backend_tokenizer)
    batch = batches.collate([row])
    with torch.no_grad():
        company = model(input_ids=batch["ids"], attention_mask=batch["mask"], position_ids=batch["places"]).logits[0]
        last = exercise.asked[-1]
        alone_text = exercise.shared(TEMPLATE) + exercise.own(TEMPLATE, last)
        alone = model(**tokenizer(alone_text, return_tensors="pt", return_token_type_ids=False)).logits[0, -1]
    place = row.weight.index(batches.FIRST, row.group.index(len(exercise.asked))) - 1
    assert torch.allclose(company[place], alone, atol=1e-3)


def test_the_first_weights_look_where_they_should(scripts: Any, tiny: tuple[Any, Any]) -> None:
    """Planted heads: one token back, four back, the last twenty; what repeats surprises less than the first time."""
    torch.set_num_threads(1)
    model = scripts("train_tiny").make_model(4096, tiny[0].convert_tokens_to_ids("]"), 0)
    model.config._attn_implementation = "eager"
    ids = torch.randint(1, 4096, (1, 60), generator=torch.Generator().manual_seed(0)).repeat(1, 2)
    with torch.no_grad():
        seen = model(input_ids=ids, output_attentions=True)
    last, fourth, mix = seen.attentions[0][0, :3]
    assert last.diagonal(-1)[10:].mean() > 0.9 and fourth.diagonal(-4)[10:].mean() > 0.9
    even = torch.stack([mix.diagonal(-back)[-80:].mean() for back in range(20)])
    assert even.sum() > 0.9 and even.max() < 0.1
    surprise = torch.nn.functional.cross_entropy(seen.logits[0, :-1], ids[0, 1:], reduction="none")
    assert surprise[60:].mean() < surprise[:59].mean() - 1.0


def test_the_first_weights_bring_a_rule_to_the_question(scripts: Any, tiny: tuple[Any, Any]) -> None:
    """The second "]" of a rule looks at its first one, and "Answer:" at the rule of the asked relation."""
    tokenizer, _ = tiny
    bracket = tokenizer.convert_tokens_to_ids("]")
    model = scripts("train_tiny").make_model(len(tokenizer), bracket, 0)
    model.config._attn_implementation = "eager"
    documents = (Passage("0", "Israel threaten Uganda."),)

    def looks(*rules: Rule) -> tuple[list[int], Any]:
        text = Prompt(TEMPLATE, "what does Israel accuse ?", documents, rules).render()
        ids = tokenizer(text, return_tensors="pt", return_token_type_ids=False).input_ids
        with torch.no_grad():
            seen = model(input_ids=ids, output_attentions=True).attentions
        return (ids[0] == bracket).nonzero()[:, 0].tolist(), seen

    (body, head), seen = looks(Rule(head="accuse", body="threaten"))
    assert seen[1][0, 0, head].argmax() == body
    (_, other, _, asked), seen = looks(Rule(head="praise", body="visit"), Rule(head="accuse", body="threaten"))
    assert seen[2][0, 0, -1, asked] > 2 * seen[2][0, 0, -1, other]
