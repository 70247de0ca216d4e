"""The board and its site: what is shown, that texts stay texts, that the same entries give the same bytes."""

from __future__ import annotations

import csv
import json
import re
import shutil
import subprocess
from html.parser import HTMLParser

import pytest

from lm_eval_rag.cli import main
from lm_eval_rag.leaderboards.board.content import CANARIES, board_of
from lm_eval_rag.leaderboards.board.entries import Entry, read_entries
from lm_eval_rag.leaderboards.board.site import _script, index_data, write_site
from lm_eval_rag.leaderboards.submissions.form import slug_of
from tests.conftest import ROOT
from tests.leaderboards.conftest import TASK

EVIL = '<img src=x onerror="document.title=1">'
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


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
    assert best.cost == {"calls": 1, "tokens": 100, "seconds": 0.5} and set(best.gains) == {CANARIES[1]}
    assert tied.cost == {}, "what is not declared is missing, not 0"


def test_our_own_entries_are_on_the_board():
    """They are for the data of today; after a change of the data, scripts/board.py --anew makes them again."""
    accepted, refused = read_entries(ROOT / "leaderboards" / "entries")
    assert not refused and len(accepted) >= 5
    means = {entry.slug: entry.tasks[TASK].means["em"] for entry in accepted}
    assert max(means, key=means.get).startswith("rule-vote"), "as README's first table says"


def test_flagged_entries_and_copies_are_not_ranked(write, tmp_path):
    write("One", share(100))
    write("Two", share(100), method="another")
    accepted, _ = read_entries(tmp_path)
    (task,) = board_of(accepted).tasks
    assert {row.name: (row.kind, row.standing) for row in task.rows if row.slug} == {
        "One": ("flagged", None), "Two": ("flagged", None),
    }  # fmt: skip
    assert "are those of 'Two'" in task.rows[0].flags[0]


def test_scores_are_kept_and_made_anew_when_predictions_change(write, tmp_path):
    path = write("One", share(100))
    (before,), _ = read_entries(tmp_path)
    (again,), _ = read_entries(tmp_path)
    assert again.tasks[TASK].scores == before.tasks[TASK].scores
    file = path / "predictions" / f"{TASK}.jsonl"
    file.write_text(file.read_text().replace("wrong", "other"))
    file.write_text(file.read_text().replace('"other q199"', '"x"', 1))
    (changed,), _ = read_entries(tmp_path)
    assert isinstance(changed, Entry) and changed.predictions[TASK]["q199"].answer == "x"


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
        assert all(re.match(r"https://|\.\./index\.html$|entries/|board\.csv$", one) for one in tags.addresses)
    for page in (tmp_path / "site").rglob("*.js"):
        assert "<" not in page.read_text()
    rows = list(csv.reader((tmp_path / "site" / "board.csv").open()))
    assert rows[0][:4] == ["task", "rank", "name", "kind"]
    assert "'=1+1" in {cell for row in rows for cell in row} and "=1+1" not in {cell for row in rows for cell in row}


def test_data_in_scripts_are_the_data():
    text = "</script><!--\u2028 & \"quoted\" \\ 'x'"
    assert json.loads(_script([text])) == [text]
    assert not set("<>&\u2028") & set(_script([text]))


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
    assert {path.stem for path in folder.glob("entries/*")} == {path.stem for path in folder.glob("data/*")} - {
        f"{TASK}.pairs", f"{TASK}.questions",
    }  # fmt: skip
    assert not (folder / "entries" / "best.html").exists() and (folder / "entries" / "near.html").exists()


def test_the_table_has_what_was_computed(entries):
    board = board_of(*read_entries(entries))
    (task,) = index_data(board)["tasks"]
    assert task["metric"] == "em" and task["questions"] == 200
    best = next(row for row in task["rows"] if row["name"] == "Best")
    assert best["scores"]["em"][0] == 60.0 and best["rank"] == [1, 1, 2]
    assert best["scores"]["em"][1] < 60 < best["scores"]["em"][2]


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


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium")
def test_the_page_runs_in_a_browser(entries, tmp_path):
    """The table is drawn from a file address, deep links keep filters, two entries are compared, texts are texts."""
    write_site(board_of(*read_entries(entries)), tmp_path / "site")

    def dom(address):
        command = [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=4000", "--dump-dom"]
        place = f"file://{tmp_path / 'site' / 'index.html'}{address}"
        profile = f"--user-data-dir={tmp_path / 'profile'}"
        return subprocess.run([*command, profile, place], capture_output=True, text=True, timeout=120).stdout

    whole = dom("")
    assert "<title>RAG leaderboard</title>" in whole and "<img" not in whole
    assert "Ranked by em. 6 of 6 rows" in whole
    filtered = dom("#search=near&compare=best,near")
    assert "Ranked by em. 1 of 6 rows" in filtered
    assert "Best minus Near: 5.0" in filtered and "right in the first alone" in filtered
