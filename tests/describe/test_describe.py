"""``lm-eval-rag describe``, and that nothing in a registry lacks documentation."""

import ast
import inspect
from functools import partial
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from lm_eval_rag import cli, describe
from lm_eval_rag._register import METHODS, MODELS, method_of
from lm_eval_rag.describe.description import KINDS, Description
from lm_eval_rag.describe.docstrings import read_docstring
from lm_eval_rag.describe.models import model
from lm_eval_rag.describe.page import page
from lm_eval_rag.describe.signatures import arguments_of
from lm_eval_rag.describe.tasks import about_tasks, first_scores, names_in_files
from lm_eval_rag.harness.core.parameters import defaults
from lm_eval_rag.harness.generators.spec import SPEED_ONLY
from lm_eval_rag.harness.plugin.arguments import OURS
from lm_eval_rag.harness.plugin.shared_arguments import SHARED
from lm_eval_rag.harness.plugin.shared_metadata import METADATA
from lm_eval_rag.harness.retrieval import PARTS, RETRIEVERS
from lm_eval_rag.harness.scoring import METRICS

ROOT = Path(__file__).resolve().parents[2]
ENTRIES = [(kind, name) for kind, (names, _) in describe.REGISTRIES.items() for name in names()]
WITHOUT_PAPER = {"rag", "external", "run"}  # nothing to cite
TRIVIAL = {"mode_of_relation", "mode_of_subject", "last_object", "link_vote", "copy_vote"}
WITHOUT_PAPER |= TRIVIAL
FROM_NOBODY = {"external", "rule_vote", *TRIVIAL}  # departs from no paper


def entry(kind: str, name: str) -> Description:
    return describe.REGISTRIES[kind][1](name)


def test_the_registries_are_those_of_the_package() -> None:
    assert set(describe.REGISTRIES) == set(KINDS)
    by_kind = {kind: {name for one, name in ENTRIES if one == kind} for kind in KINDS}
    assert by_kind["model"] == set(MODELS) and by_kind["metric"] == set(METRICS)
    assert by_kind["retriever"] == set(RETRIEVERS)
    assert {"ruleqa", "ruleqa_i_hard", "crag_task3", "crp_table1", "reasoning_demo"} <= by_kind["task"]


@pytest.mark.parametrize(("kind", "name"), ENTRIES)
def test_every_entry_is_documented(kind: str, name: str) -> None:
    about = entry(kind, name)
    assert (about.kind, about.name) == (kind, name)
    assert about.summary.endswith((".", "?", ")")) and len(about.summary) > 15
    assert about.sources or name in WITHOUT_PAPER
    for argument in (*about.arguments, *about.shared):
        assert argument.meaning.endswith((".", ")")), f"{name}: {argument.name} has no meaning"
        assert argument.type, f"{name}: {argument.name} has no type"


@pytest.mark.parametrize("name", METHODS)
def test_every_parameter_of_a_method_is_among_its_arguments(name: str) -> None:
    about = entry("model", name)
    assert [argument.name for argument in about.arguments] == list(defaults(method_of(name)))
    assert about.departures or name in FROM_NOBODY, f"{name} does not say how it departs from its paper"


@pytest.mark.parametrize("name", METHODS)
def test_a_docstring_names_no_parameter_that_is_not_there(name: str) -> None:
    documented = {parameter for parameter, _ in read_docstring(inspect.getdoc(method_of(name))).parameters}
    assert documented == set(defaults(method_of(name)))


@pytest.mark.parametrize("name", RETRIEVERS)
def test_every_option_of_a_retriever_is_among_its_arguments(name: str) -> None:
    names = {argument.name for argument in entry("retriever", name).arguments}
    parts = {f"{part}_*" for part in PARTS.get(name, ())}
    assert names == {f"retriever_{option}" for option in (*defaults(RETRIEVERS[name]), *parts)}


def test_every_argument_of_all_models_is_among_them() -> None:
    assert {*OURS, "gen_*", "retriever_*"} <= set(SHARED)
    assert {f"gen_{name}" for name in SPEED_ONLY if name != "batch_size"} <= set(SHARED)
    assert all(one.type and one.meaning.endswith(".") for one in SHARED.values())


def test_every_task_says_what_it_is() -> None:
    assert set(about_tasks()) == set(names_in_files())
    for name in about_tasks():
        assert set(first_scores(name)) <= set(METRICS), name


def test_the_scores_to_look_at_first_are_those_of_the_yaml(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "own").mkdir()
    files = {
        "_base": 'metadata:\n  version: 1\n  headline: [em, "recall@10"]\n',
        "a.yaml": "include: _base\ntask: a\n",
        "b.yaml": "include: _base\ntask: b\nmetadata:\n  headline: [mrr]\n",
        "c.yaml": "task: c\n",
    }
    for name, text in files.items():
        (tmp_path / "own" / name).write_text(text, encoding="utf-8")
    monkeypatch.setattr("lm_eval_rag.describe.tasks.tasks_folder", lambda: tmp_path)
    assert [first_scores(name) for name in "abc"] == [("em", "recall@10"), ("mrr",), ()]


@pytest.mark.parametrize("file", sorted(ROOT.glob("tasks/*/task.py")), ids=lambda file: file.parent.name)
def test_every_key_of_metadata_that_a_task_reads_is_an_option(file: Path) -> None:
    """Keys are read as ``metadata.get("corpus")``, or from the tuple CHOICES."""
    read: set[str] = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("metadata.get"):
            read |= {str(ast.literal_eval(node.args[0]))}
        elif isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "CHOICES":
            read |= set(ast.literal_eval(node.value))
    for name in (name for name, folder in names_in_files().items() if folder == file.parent.name):
        inherited = {"split"} if name == "crag_demo" else set()
        assert set(about_tasks()[name].options) == read | inherited, name
    assert not read & set(METADATA)


def test_metrics_with_a_cutoff_name_it() -> None:
    assert "the first 5 documents" in entry("metric", "recall@5").summary
    assert entry("metric", "sp_precision").summary == "The precision of supporting facts."
    assert entry("metric", "joint_em").summary == "The exact match of answer and evidence jointly."
    partials = [name for name, one in METRICS.items() if isinstance(one.of, partial)]
    assert not [name for name in partials if "`k`" in entry("metric", name).summary]


@pytest.mark.parametrize(
    ("name", "paper"),
    [
        ("ircot", "arXiv:2212.10509"),
        ("em", "arXiv:2410.22353"),
        ("crag_score", "arXiv:2406.04744"),
        ("acc_lm", "doi:10.20944/preprints202411.1648.v1"),
        ("hotpot_f1", "arXiv:1809.09600"),
        ("attributed", "this project"),
        ("bm25", "Kamphuis et al., ECIR 2020"),
        ("hybrid", "Cormack, Clarke and Buettcher, SIGIR 2009"),
        ("ruleqa_demo", "this project"),
        ("musique", "MuSiQue (arXiv:2108.00573)"),
    ],
)
def test_sources(name: str, paper: str) -> None:
    (about,) = describe.described(name)
    assert paper in about.sources


# --- the command


def test_a_range_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["describe", "crp_rag"]) == 0
    said = capsys.readouterr().out
    assert "  similarity [0.7]: a number of 0 or more and of 1 or less\n" in said
    assert "  threshold [1.4]: a number of 1 or more\n" in said


def test_one_name(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["describe", "ircot"]) == 0
    said = capsys.readouterr().out
    assert said.startswith("ircot (model)\n")
    assert "  k [6]: a whole number of 1 or more and of 10000 or less\n      Passages of each retrieval.\n" in said
    assert "  variant [paper]: one of paper, official, flashrag\n" in said
    assert "departures from the source:" in said and "source: arXiv:2212.10509" in said
    assert "  generator [tiny]: a text" in said
    assert max(map(len, said.splitlines())) <= 110


def test_terms_of_data(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["describe", "ruleqa_i", "ruleqa_demo"]) == 0
    said = capsys.readouterr().out
    assert "research and educational use only" in said and "No terms apply." in said


def test_all_names(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["describe"]) == 0
    said = capsys.readouterr().out
    assert [line for line in said.splitlines() if line.endswith("s:")] == [
        "models:",
        "tasks:",
        "metrics:",
        "retrievers:",
    ]
    listed = {line.split()[0] for line in said.splitlines() if line.startswith("  ")}
    assert listed == {name for _, name in ENTRIES}


@pytest.mark.parametrize(("given", "near"), [("ircott", "'ircot'"), ("recal@5", "'recall@5'"), ("bm52", "'bm25'")])
def test_an_unknown_name_names_the_nearest(given: str, near: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["describe", given]) == 2
    assert near in capsys.readouterr().err


def test_a_method_of_ones_own(tmp_path: Path) -> None:
    code = '''"""Mine: two steps (arXiv:1234.56789).

Departures: none that matter.
"""

from lm_eval_rag import Answer, Plan, Positive, Query, retrieve


def mine(query: Query, *, k: Positive = 5, note: str | None = None) -> Plan[Answer]:
    """Answer.

    Args:
        k: Passages,
            at most.
    """
    return Answer("x", (yield from retrieve(query.text, k)))
'''
    (tmp_path / "mine_method.py").write_text(code, encoding="utf-8")
    about = model(f"{tmp_path / 'mine_method.py'}:mine")
    assert (about.name, about.summary) == ("mine", "Mine: two steps (arXiv:1234.56789).")
    assert about.departures == ("none that matter.",) and about.sources == ("arXiv:1234.56789",)
    k, note = about.arguments
    assert (k.default, k.type, k.meaning) == ("5", "a whole number of 1 or more", "Passages, at most.")
    assert (note.default, note.type, note.meaning) == ("", "a text or None", "")


def test_a_method_of_another_package(monkeypatch: pytest.MonkeyPatch) -> None:
    point = EntryPoint("theirs", "lm_eval_rag.methods.ircot:ircot", "lm_eval_rag.methods")
    for module in ("lm_eval_rag.describe.models", "lm_eval_rag._register"):
        monkeypatch.setattr(f"{module}.entry_points", lambda group: [point] if group == point.group else [])
    (about,) = describe.described("theirs")
    assert about.usage.endswith("--model rag --model_args method=theirs") and about.arguments[0].name == "k"


def test_formulas_and_lists_keep_their_lines() -> None:
    read = read_docstring(
        "A.\n\n    a = b\n    c = d\n\nText that\ngoes on. Departures: one,\ntwo.\n\nArgs:\n    k: K."
    )
    assert read.text == ("    a = b\n    c = d", "Text that goes on.")
    assert read.departures == ("one, two.",) and read.parameters == (("k", "K."),)


def test_arguments_need_no_docstring() -> None:
    def bare(corpus: object, *, k1: float = 0.9) -> None: ...

    (argument,) = arguments_of(bare)
    assert (argument.name, argument.type, argument.default, argument.meaning) == ("k1", "a number", "0.9", "")


def test_points_of_a_list_are_departures_of_their_own() -> None:
    about = read_docstring("One.\n\nDepartures:\n- The first goes\n  on here.\n- ``b`` is the second.\n")
    assert about.departures == ("The first goes on here.", "`b` is the second.")


def test_a_group_has_the_terms_of_its_tasks() -> None:
    (about,) = describe.described("multihop")
    assert dict(about.notes)["terms"] == "those of its tasks, which `lm-eval-rag describe TASK` says."
    assert "No terms apply." not in page(about)
