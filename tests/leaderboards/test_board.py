"""The board and its site: what is shown, that texts stay texts, that the same entries give the same bytes."""

from __future__ import annotations

import csv
import json
import re
import shutil
from dataclasses import replace
from html.parser import HTMLParser
from types import SimpleNamespace

import numpy as np
import pytest

from lm_eval_rag.cli import main
from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.leaderboards.board.canaries import CANARIES, COMMON, COMMON_OF_KIND, COPIED, canary_predictions
from lm_eval_rag.leaderboards.board.content import BEST_TRIVIAL
from lm_eval_rag.leaderboards.board.copies import shares_alike
from lm_eval_rag.leaderboards.board.curves import risk_coverage
from lm_eval_rag.leaderboards.board.entries import Entry, read_entries, sampled
from lm_eval_rag.leaderboards.board.families import FAMILIES, family_of
from lm_eval_rag.leaderboards.board.history import keep
from lm_eval_rag.leaderboards.board.overall import board_of, group_members
from lm_eval_rag.leaderboards.board.page_data import in_script, index_data
from lm_eval_rag.leaderboards.board.site import write_site
from lm_eval_rag.leaderboards.submissions.form import Claim, slug_of
from lm_eval_rag.leaderboards.submissions.reading import read_submission
from lm_eval_rag.leaderboards.submissions.suspicions import ALIKE, alike
from lm_eval_rag.leaderboards.submissions.verifying import verify
from tests.conftest import ROOT
from tests.leaderboards.conftest import TASK

SETS = tuple(f"ruleqa_{letter}" for letter in "iywfn")  # in the order of RESULTS.md's tables
LINK = r"https://|\.\./index\.html(#|$)|entries/|[a-z0-9-]+(\.answers)?\.html(#|$)|#|board\.csv$"
EVIL = '<img src=x onerror="document.title=1">'


def share(n):
    return lambda id, doc: doc["answers"][0] if int(id[1:]) < n else f"wrong {id}"


def near(id, doc):
    """Right on 110 questions: on 90 of those that ``share(120)`` has right, and on 20 others."""
    return doc["answers"][0] if 30 <= int(id[1:]) < 140 else f"false {id}"


@pytest.fixture
def entries(write, tmp_path):
    """Three entries that tie or not, one of hostile texts, one withdrawn, one refused."""
    cost = {"calls": 1, "prompt_tokens": 90, "completion_tokens": 10, "seconds": 0.5}
    write("Best", share(120), fields=lambda id, doc: cost)
    write("Near", near, generator="g", parameters=10**9)
    write("Far", lambda id, doc: share(20)(id, doc).replace("wrong", "no"), generator="g", method="standard_rag")
    write(EVIL[:60], lambda id, doc: f"{EVIL} {id}", folder="evil", team="=1+1", code="https://example.org/a?b=1&c=2")
    write("Gone", share(100), folder="gone")
    broken = write("Broken", folder="broken")
    (broken / "Makefile").write_text("")
    (tmp_path / "withdrawn.json").write_text(json.dumps({"gone": "an error in its data"}))
    return tmp_path


def test_entries_are_ranked_and_others_leave_a_trace(entries):
    accepted, refused = read_entries(entries)
    board = board_of(accepted, refused)
    (task,) = board.tasks
    ranks = {row.name: row.standing and row.standing.rank for row in task.rows}
    assert ranks == {"Best": 1, "Near": 1, "Far": 3, EVIL[:60]: 4} | dict.fromkeys(CANARIES)
    assert [(one.name, one.reason.split(":")[0]) for one in refused] == [
        ("broken", "Makefile is no part of a submission. Leave it out"),
        ("gone", "withdrawn"),
    ]
    tied = next(row for row in task.rows if row.name == "Near")
    assert tied.gains["standard_rag, same generator"].interval.mean == pytest.approx(0.45)
    best = next(row for row in task.rows if row.name == "Best")
    assert best.cost == {"calls": 1, "tokens": 100, "seconds": 0.5} and set(best.gains) == {BEST_TRIVIAL}
    assert tied.cost == {}, "what is not declared is missing, not 0"


def own_entries(folder, of_ruleqa):
    """Copies of our own entries: those whose tasks need no download, or those of the five RuleQA sets."""
    for path in (ROOT / "leaderboards" / "entries").glob("*/submission.json"):
        needs_data = any(task in SETS for task in json.loads(path.read_text(encoding="utf-8"))["tasks"])
        if needs_data == of_ruleqa:
            shutil.copytree(path.parent, folder / path.parent.name)
    return folder


def test_our_own_entries_are_on_the_board(tmp_path):
    """They are for the data of today; after a change of the data, scripts/board.py --anew makes them again."""
    accepted, refused = read_entries(own_entries(tmp_path, of_ruleqa=False))
    assert not refused and {task for entry in accepted for task in entry.tasks} >= {TASK, "reasoning_demo", "crag_demo"}
    means = {entry.slug: entry.tasks[TASK].mean("em") for entry in accepted if TASK in entry.tasks}
    assert len(means) >= 10 and max(means, key=means.get).startswith("rule-vote"), "as README's first table says"


def test_our_own_entries_of_ruleqa_have_the_scores_of_results(mirror, tmp_path):
    """Of one entry, so that the test is short: the row of ``rulerag_ft`` in RESULTS.md is scored anew."""
    entry = own_entries(tmp_path, of_ruleqa=True) / "rulerag-ft-tiny-ruleqa"
    scores = verify(entry).tasks
    text = (ROOT / "RESULTS.md").read_text(encoding="utf-8")
    (row,) = re.findall(r"^\| `rulerag_ft`: fine-tuned with rules \(RGFT\) \|(.*)\|$", text, re.MULTILINE)
    shown = [float(cell.split()[0]) for cell in row.split("|")]
    assert shown == [round(100 * float(np.mean(list(scores[task].scores["em"].values()))), 1) for task in SETS]


def test_flagged_entries_and_copies_are_not_ranked(write, tmp_path):
    write("One", share(100))
    write("Two", share(100), method="another")
    accepted, _ = read_entries(tmp_path)
    (task,) = board_of(accepted).tasks
    assert {row.name: (row.kind, row.standing) for row in task.rows if row.slug} == {
        "One": ("flagged", None), "Two": ("flagged", None),
    }  # fmt: skip
    assert "are those of 'Two'" in next(row for row in task.rows if row.name == "One").flags[0]


def test_a_cleared_entry_is_ranked_beside_its_copy_until_its_files_change(write, tmp_path, capsys):
    path = write("Original", share(100))
    write("Copy", share(100), method="another")
    assert main(["verify", str(path), "--clear", "It came first.", "--by", "A maintainer"]) == 0
    assert json.loads(capsys.readouterr().out)["cleared"]["reason"] == "It came first."
    (task,) = board_of(read_entries(tmp_path)[0]).tasks
    rows = {row.name: row for row in task.rows}
    assert (rows["Original"].kind, rows["Original"].standing.rank, rows["Original"].flags) == ("entry", 1, ())
    assert (rows["Copy"].kind, rows["Copy"].standing) == ("flagged", None)
    note = rows["Original"].cleared
    assert "are those of 'Copy'" in note and "Cleared by A maintainer on 20" in note and "It came first." in note
    card = path / "submission.json"
    card.write_text(card.read_text().replace('"a team"', '"b team"'))
    (task,) = board_of(read_entries(tmp_path)[0]).tasks
    assert {row.kind for row in task.rows if row.slug} == {"flagged"}, "the record is of the files as they were"


def test_a_clearance_needs_a_name_and_a_reason_and_is_never_part_of_an_entry(write, tmp_path, capsys):
    path = write("One", share(100))
    for arguments in (["--clear", "A reason."], ["--clear", "", "--by", "m"], ["--by", "m"]):
        assert main(["verify", str(path), *arguments]) == 2
        assert "--by NAME" in (said := capsys.readouterr().err) or "--clear ''" in said
    (tmp_path / "cleared.json").write_text('{"one": {"entry": "x"}}')
    with pytest.raises(UserError, match=r"cleared\.json, one\.entry"):
        read_entries(tmp_path)
    (tmp_path / "cleared.json").rename(path / "cleared.json")
    assert [one.name for one in read_entries(tmp_path)[1]] == ["one"], "refused: it brings its own record"


def test_shares_of_equal_wrong_answers_are_those_of_each_pair(write, tmp_path):
    write("One", share(100))
    write("Near copy", lambda id, doc: share(100)(id, doc) if id != "q150" else "else")
    write("Other", share(5), fields=lambda id, doc: {"abstained": id > "q100"})
    write("Far", lambda id, doc: f"no {id}")
    accepted, _ = read_entries(tmp_path)
    predictions = {one.slug: read_submission(one.path).predictions[TASK] for one in accepted}
    expected = {}
    for i, first in enumerate(accepted):
        right = dict(zip(predictions[first.slug], first.tasks[TASK].scores["em"], strict=True))
        for j, second in enumerate(accepted):
            share_of_pair = alike(predictions[first.slug], predictions[second.slug], right)
            if i != j and share_of_pair >= ALIKE:
                expected[i, j] = pytest.approx(share_of_pair)
    assert shares_alike(accepted, TASK) == expected and len(expected) >= 2


def test_trivial_baselines_are_grey_and_what_others_are_compared_with(write, tmp_path):
    write("Look-up", lambda id, doc: share(60)(id, doc).replace("wrong", "no"), method="last_object")
    write("Better", share(140), method="ircot")
    (task,) = board_of(read_entries(tmp_path)[0]).tasks
    rows = {row.name: row for row in task.rows}
    assert rows["Look-up"].kind == "trivial" and rows["Look-up"].standing is None
    assert rows["Better"].standing.rank == 1
    assert rows["Better"].gains[BEST_TRIVIAL].interval.mean == pytest.approx(0.4)
    assert [row.name for row in task.rows][:2] == ["Look-up", "Better"], "first, whatever they score"


def test_self_reported_scores_are_apart_and_never_ranked(write, tmp_path, tmp_path_factory):
    write("One", share(100))
    source = "https://example.org/paper"
    claim = Claim(name="A paper", team="t", method="ircot", source=source, scores={TASK: {"em": 0.99}})
    board = board_of(*read_entries(tmp_path), [claim])
    (task,) = board.tasks
    row = task.rows[-1]
    assert (row.name, row.kind, row.standing, row.scores["em"].mean) == ("A paper", "self-reported", None, 0.99)
    assert row.scores["em"].low is None and not row.gains
    data = index_data(board)["rows"][-1]
    assert data["tier"] == "self-reported" and data["source"] == source and data["family"] == "several steps"
    site = tmp_path_factory.mktemp("site")
    write_site(board, site)
    assert "self-reported" in (site / "board.csv").read_text()


def test_canaries_score_what_they_deserve(write, tmp_path):
    write("One", share(100))
    (task,) = board_of(read_entries(tmp_path)[0]).tasks
    rows = {row.name: row for row in task.rows if row.kind == "canary"}
    assert rows["abstains always"].scores["crag_score"].mean == 0
    assert rows["instructions to a judge"].scores["crag_score"].mean == -1
    assert rows["empty answers"].scores["em"].mean == 0
    assert rows[COPIED].scores["em"].mean == 1 and "copied" in rows[COPIED].flags[0]
    assert all(row.standing is None for row in rows.values())
    assert rows[COMMON].scores["em"].mean <= rows[COMMON_OF_KIND].scores["em"].mean < 0.5
    assert max(rows[name].scores["em"].mean for name in rows if name not in (COPIED, COMMON_OF_KIND)) < 0.1


def test_the_best_constant_of_a_kind_is_counted_by_type_or_relation_but_not_by_the_label_itself(key):
    """Restated: for each relation the gold answer that is right most often, of first answers; ties by name."""
    questions = list(key.questions.values())
    for doc in questions[:20]:
        golds = [one["answers"][0] for one in questions if one["relation"] == doc["relation"]]
        expected = sorted(set(golds), key=lambda gold: (-golds.count(gold), gold))[0]
        assert canary_predictions(key)[COMMON_OF_KIND][doc["id"]].answer == expected
    labels = {str(i): {"answers": ["SUPPORTS" if i < 3 else "REFUTES"]} for i in range(5)}
    labelled = SimpleNamespace(questions={id: {**doc, "type": doc["answers"][0]} for id, doc in labels.items()})
    assert {one.answer for one in CANARIES[COMMON_OF_KIND](labelled).values()} == {"SUPPORTS"}


def test_every_method_has_a_family():
    from lm_eval_rag._register import METHODS

    listed = [method for methods in FAMILIES.values() for method in methods]
    assert len(listed) == len(set(listed))
    assert set(METHODS) - set(listed) == {"external"}, "a system of the user's is of no family of ours"
    assert family_of("my_own") == "other"


@pytest.mark.parametrize(("right", "wrong"), [(100, 100), (10, 100), (100, 0), (3, 4)])
def test_samples_are_half_right_and_half_wrong(right, wrong):
    ids = [str(i) for i in range(right + wrong)]
    chosen = sampled(ids, np.array([1.0] * right + [0.0] * wrong))
    hits = sum(int(id) < right for id in chosen)
    assert len(chosen) == len(set(chosen)) == min(50, right + wrong)
    assert hits == min(right, max(25, 50 - wrong)) and len(chosen) - hits == min(wrong, max(25, 50 - right))


def test_a_group_is_the_mean_of_its_tasks_and_a_missing_task_is_missing(write, tmp_path):
    """Two entries and one that lacks the second task; the second task is the first under another name."""
    from lm_eval_rag.leaderboards.board import overall

    write("Whole", share(120))
    write("Half", share(150))
    whole, half = sorted(read_entries(tmp_path)[0], key=lambda one: one.slug, reverse=True)
    tables = {}
    for name, entries in (("t1", [whole, half]), ("t2", [whole])):
        table, scores = overall.task_board(TASK, entries, [], [], 0)
        tables[name] = (replace(table, task=name), scores)
    group = overall._group("both", *zip(*tables.values(), strict=True))
    rows = {row.name: row for row in group.rows}
    assert rows["Whole"].scores["em"].mean == pytest.approx(0.6) and rows["Whole"].standing.rank == 1
    assert rows["Whole"].scores["em"].low < 0.6 < rows["Whole"].scores["em"].high
    assert rows["Half"].standing is None and "em" not in rows["Half"].scores and rows["Half"].note == "lacks t2"
    assert rows["Half"].scores["t1"].mean == pytest.approx(0.75) and "t2" not in rows["Half"].scores
    assert "ruleqa" in group_members() and group.members == ("t1", "t2")


def test_results_of_other_versions_stay_readable_and_withdrawn_entries_leave_a_trace(write, tmp_path, tmp_path_factory):
    folder, site = tmp_path_factory.mktemp("history"), tmp_path_factory.mktemp("site")
    write("One", share(100))
    write("Two", lambda id, doc: share(10)(id, doc).replace("wrong", "no"))
    board = board_of(*read_entries(tmp_path))
    assert keep(board, folder) == ()
    (file,) = folder.glob("*.parquet")
    before = file.read_bytes()
    assert keep(board, folder) == () and file.read_bytes() == before, "rows are only added"
    file.rename(folder / f"{TASK}.0123456789abcdef.{board.scorer}.parquet")
    (tmp_path / "withdrawn.json").write_text(json.dumps({"two": "an error"}))
    after = board_of(*read_entries(tmp_path))
    (older,) = keep(after, folder)
    assert [about["name"] for about, _ in older.rows] == ["One", "Two"] and older.data == "0123456789abcdef"
    assert older.rows[0][1]["em"].mean == 0.5
    write_site(after, site, (older,))
    assert "0123456789abcdef" in (site / "older.html").read_text()
    assert "0123456789abcdef" not in (site / "index.html").read_text()
    (folder / "other.parquet").write_text("")
    with pytest.raises(UserError, match="cannot be read"):
        keep(after, folder)


def test_scores_are_kept_and_made_anew_when_predictions_change(write, tmp_path):
    path = write("One", share(100))
    (before,), _ = read_entries(tmp_path)
    (again,), _ = read_entries(tmp_path)
    assert {name: list(values) for name, values in again.tasks[TASK].scores.items()} == {
        name: list(values) for name, values in before.tasks[TASK].scores.items()
    }
    assert again.digest == before.digest
    file = path / "predictions" / f"{TASK}.jsonl"
    file.write_text(file.read_text().replace("wrong", "other"))
    file.write_text(file.read_text().replace('"other q199"', '"x"', 1))
    (changed,), _ = read_entries(tmp_path)
    assert isinstance(changed, Entry) and changed.tasks[TASK].answers[199] == "x"
    assert changed.digest != before.digest


def test_two_entries_of_one_name(write, tmp_path):
    write("One", share(100), folder="a")
    write("One", share(50), folder="b")
    accepted, refused = read_entries(tmp_path)
    assert [one.path.name for one in accepted] == ["a"] and refused[0].reason.startswith("The name is taken by a")


@pytest.mark.parametrize("name", ["../../etc", "a/b", "Ä Ö", "...", "a" * 80, "CON", "日本語", "A b", "a-b"])
def test_slugs_are_safe_and_names_that_lose_characters_stay_apart(name):
    assert re.fullmatch(r"[a-z0-9-]{1,80}", slug_of(name))
    assert slug_of(name) != slug_of(name + "é")


class Tags(HTMLParser):
    """The tags and addresses of a page."""

    def __init__(self):
        super().__init__()
        self.tags, self.addresses = [], []

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.addresses += [value for name, value in attributes if name in ("href", "src")]
        assert not any(name.startswith("on") for name, _ in attributes), attributes


def test_texts_stay_texts(entries, tmp_path):
    write_site(board_of(*read_entries(entries)), tmp_path / "site")
    for page in (tmp_path / "site").rglob("*.html"):
        tags = Tags()
        tags.feed(page.read_text())
        assert "img" not in tags.tags, page
        assert all(
            re.match(r"https://|\.\./index\.html(#|$)|entries/|[a-z0-9-]+(\.answers)?\.html(#|$)|#|board\.csv$", one)
            for one in tags.addresses
        )
    for page in (tmp_path / "site").rglob("*.js"):
        assert "<" not in page.read_text()
    rows = list(csv.reader((tmp_path / "site" / "board.csv").open()))
    assert rows[0][:4] == ["task", "rank", "name", "kind"]
    assert "'=1+1" in {cell for row in rows for cell in row} and "=1+1" not in {cell for row in rows for cell in row}


def test_data_in_scripts_are_the_data():
    text = "</script><!--\u2028 & \"quoted\" \\ 'x'"
    assert json.loads(in_script([text])) == [text]
    assert not set("<>&\u2028") & set(in_script([text]))


def test_the_same_entries_give_the_same_bytes(entries, tmp_path_factory):
    sites = []
    for _ in range(2):
        folder = tmp_path_factory.mktemp("site")
        paths = write_site(board_of(*read_entries(entries)), folder)
        sites.append({path.relative_to(folder): path.read_bytes() for path in paths})
    assert sites[0] == sites[1]


def test_a_site_that_is_built_again_has_no_page_of_a_withdrawn_entry(entries, tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    write_site(board_of(*read_entries(entries)), folder)
    (entries / "withdrawn.json").write_text(json.dumps({"gone": "a", "best": "b"}))
    write_site(board_of(*read_entries(entries)), folder)
    slugs = {path.name.removesuffix(".html") for path in folder.glob("entries/*") if ".answers." not in path.name}
    assert {path.name for path in folder.glob("data/*")} == {f"{slug}.{TASK}.js" for slug in slugs} | {
        f"{TASK}.rows.js", f"{TASK}.questions.js",
    }  # fmt: skip
    assert not (folder / "entries" / "best.html").exists() and (folder / "entries" / "near.html").exists()


def test_the_table_has_what_was_computed(entries):
    board = board_of(*read_entries(entries))
    data = index_data(board)
    (task,) = data["tasks"]
    assert task["metric"] == "em" and task["questions"] == 200
    best = next(row for row in data["rows"] if row["name"] == "Best")
    mean, low, high = best["scores"][[name for name, *_ in task["metrics"]].index("em")]
    assert mean == 60.0 and low < 60 < high and best["rank"] == [1, 1, 2]


def test_answers_with_a_confidence_have_a_curve_and_others_a_point(write, tmp_path):
    """The surer half of these answers is right in 66 of 90 cases, all of them in half; 20 are not answered."""

    def sure(id, doc):
        n = int(id[1:])
        return {"abstained": True} if n >= 180 else {"confidence": float(n < 90) - 3}

    def right(id, doc):
        n = int(id[1:])
        return "" if n >= 180 else doc["answers"][0] if (n % 4 != 3 and n < 88) or n >= 156 else f"wrong {id}"

    write("Sure", right, fields=sure)
    write("Unsure", right, fields=lambda id, doc: sure(id, doc) if id != "q000" else {})
    curves = {entry.card.name: risk_coverage(entry.tasks[TASK]) for entry in read_entries(tmp_path)[0]}
    first, last = curves["Sure"]
    assert first == (0.45, pytest.approx(66 / 90)) and last == (0.9, pytest.approx(90 / 180))
    assert curves["Unsure"] == (last,)


def test_an_empty_board_and_wrong_folders(tmp_path, capsys):
    (tmp_path / "none").mkdir()
    assert main(["board", "build", str(tmp_path / "none"), "--out", str(tmp_path / "site")]) == 0
    assert "no entry yet" in (tmp_path / "site" / "index.html").read_text()
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "thesis.doc").write_text("")
    for arguments, words in (
        (["build", str(tmp_path / "nothing"), "--out", str(tmp_path / "s")], "is no folder"),
        (["build", str(tmp_path / "none"), "--out", str(tmp_path / "other")], "holds other files"),
        (["serve", str(tmp_path / "none")], "has no index.html"),
        (["serve", str(tmp_path / "site"), "--port", "99999"], "--port 99999"),
    ):
        capsys.readouterr()
        assert main(["board", *arguments]) == 2
        assert words in capsys.readouterr().err
    (tmp_path / "none" / "withdrawn.json").write_text("[]")
    assert main(["board", "build", str(tmp_path / "none"), "--out", str(tmp_path / "site")]) == 2
