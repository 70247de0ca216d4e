"""``lm-eval-rag view``: what the page holds against the samples, what it refuses, and that texts stay texts."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import re
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from html.parser import HTMLParser
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from lm_eval_rag.harness.common.errors import MachineError, UserError
from lm_eval_rag.harness.report.run_files import read_runs
from lm_eval_rag.harness.scoring.normalise import normalise
from lm_eval_rag.harness.view import view_cli
from lm_eval_rag.harness.view.view_chunks import chunks, unpack
from lm_eval_rag.harness.view.view_cli import view_main
from lm_eval_rag.harness.view.view_page import page_of
from lm_eval_rag.harness.view.view_server import page_server, url_of

Make = Callable[..., Path]
HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)> & \"quoted\" 'single' {{ 7 * 7 }} <!-- \u2028"


class Elements(HTMLParser):
    """The elements of a page, as a browser's parser sees them: (tag, attributes, text directly in it)."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None], str]] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs), ""))

    def handle_data(self, data: str) -> None:
        if self.elements:
            tag, attributes, text = self.elements[-1]
            self.elements[-1] = (tag, attributes, text + data)

    def handle_endtag(self, tag: str) -> None:
        self.elements.append((f"/{tag}", {}, ""))

    def named(self, tag: str) -> list[tuple[dict[str, str | None], str]]:
        return [(attributes, text) for name, attributes, text in self.elements if name == tag]


def data_of(page: str) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The index, and all questions of the chunks in order."""
    scripts = {attributes["id"]: text for attributes, text in Elements(page).named("script") if "id" in attributes}
    (index,) = unpack(scripts.pop("index"))
    assert list(scripts) == [f"chunk-{number}" for number in range(len(scripts))]
    return index, [value for text in scripts.values() for value in unpack(text)]


def samples_of(folder: Path) -> list[dict[str, Any]]:
    (file,) = folder.rglob("samples_*.jsonl")
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


def change_samples(folder: Path, change: Callable[[dict[str, Any]], None]) -> None:
    (file,) = folder.rglob("samples_*.jsonl")
    samples = samples_of(folder)
    for sample in samples:
        change(sample)
    file.write_text("".join(json.dumps(sample) + "\n" for sample in samples), encoding="utf-8")


def prepare_classes(sample: dict[str, Any]) -> None:
    """Error classes need a subject; every other question gets documents that state no gold answer."""
    sample["doc"]["subject"] = "Iraq"
    if sample["doc_id"] % 2:
        sample["doc"]["_rag"]["passages"] = [p | {"object": "Nowhere"} for p in sample["doc"]["_rag"]["passages"]]
        sample["recall@10"] = 0.0


@pytest.fixture(scope="module")
def runs(make_run: Make, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two methods and a stock model on the same 60 questions; some questions of one method failed."""
    folder = tmp_path_factory.mktemp("runs")
    make_run(folder / "b", model="standard_rag", n=60, right=0.3, seed=1)
    make_run(folder / "c", model="rulerag_icl", n=60, right=0.6, seed=2, failing=0.1)
    change_samples(folder / "c", prepare_classes)
    make_run(folder / "d", model="hf", n=60, right=0.1, seed=3, stock=True)
    return folder


@pytest.fixture(scope="module")
def page(runs: Path) -> str:
    return page_of(read_runs([runs]))


# --- Data


def test_the_page_holds_every_sample(runs: Path, page: str) -> None:
    index, questions = data_of(page)
    assert index["runs"] == ["standard_rag", "rulerag_icl", "hf"]
    assert sum(index["chunks"]) == len(index["rows"]) == len(questions) == 60
    for run, name in enumerate("bcd"):
        for sample, row, whole in zip(samples_of(runs / name), index["rows"], questions, strict=True):
            doc, record = sample["doc"], sample["doc"].get("_rag") or {}
            assert row["id"] == whole["id"] == doc["id"]
            assert row["question"] == whole["question"] == doc["query"]
            assert row["golds"] == whole["golds"] == doc["answers"]
            assert row["slices"] == {key: doc[key] for key in ("slice", "popularity", "relation")}
            assert row["runs"][run]["answer"] == whole["runs"][run]["answer"] == sample["filtered_resps"][0]
            assert whole["runs"][run]["scores"] == {metric: sample[metric] for metric in sample["metrics"]}
            assert whole["runs"][run].get("failure") == record.get("failure")
            shown = whole["runs"][run].get("passages")
            assert (shown is None) == (record.get("passages") is None)
            pairs = [(passage["id"], whole["texts"][passage["text"]], passage["score"]) for passage in shown or ()]
            assert pairs == [(p["id"], p["text"], p["score"]) for p in record.get("passages") or ()]


def test_passages_that_state_a_gold_answer_are_marked(page: str) -> None:
    """Of these passages, each states the name between 'praise' and the full stop."""
    _, questions = data_of(page)
    marked = 0
    for whole in questions:
        for passage in whole["runs"][0]["passages"]:
            name = whole["texts"][passage["text"]].partition(" praise ")[2].rstrip(".")
            gold = normalise(name) in map(normalise, whole["golds"])
            assert bool(passage.get("gold")) == gold
            marked += gold
    assert marked > 60


def test_filters_have_their_inputs(runs: Path, page: str) -> None:
    index, questions = data_of(page)
    names = [metric["name"] for metric in index["metrics"]]
    assert names[:2] == ["em", "token_f1"] and "pooled_documents" not in names
    lower = {metric["name"] for metric in index["metrics"] if not metric["higher"]}
    assert lower == {"crag_missing", "crag_hallucination"}
    for row, whole in zip(index["rows"], questions, strict=True):
        for own, shown in zip(row["runs"], whole["runs"], strict=True):
            assert own["scores"] == [shown["scores"].get(name) for name in names]
            assert ("failed" in own["classes"]) == ("failure" in shown)
    classes = [name for row in index["rows"] for name in row["runs"][1]["classes"]]
    found = [sample for sample in samples_of(runs / "c") if sample.get("em") == 0.0]
    retrieved = sum(sample["recall@10"] == 1.0 for sample in found)
    assert classes.count("attribution error") == retrieved > 0
    assert classes.count("retrieval error") == len(found) - retrieved > 0
    assert classes.count("failed") > 0


def test_columns_of_ones_own_filter_if_they_have_few_short_values(make_run: Make, tmp_path: Path) -> None:
    def add_columns(sample: dict[str, Any]) -> None:
        number = sample["doc_id"]
        sample["doc"] |= {"topic": ("history", "sport")[number % 2], "level": number % 3, "checked": number > 9}
        sample["doc"] |= {"note": f"note {number}", "one": "the same", "a=b": "xy"[number % 2], "list": [number % 2]}
        sample["doc"] |= {"long": "xy"[number % 2] * 200, "some": "x" if number else None, "_own": "xy"[number % 2]}

    make_run(tmp_path / "a", model="standard_rag", n=60, right=0.3, seed=1)
    change_samples(tmp_path / "a", add_columns)
    rows = data_of(page_of(read_runs([tmp_path])))[0]["rows"]
    assert rows[1]["slices"].items() >= {"topic": "sport", "level": "1", "checked": "False"}.items()
    assert {key for row in rows for key in row["slices"]} == {
        *("slice", "popularity", "relation", "topic", "level", "checked")
    }


def test_a_run_without_record_shows_lm_evals_prompt_and_reply(page: str) -> None:
    _, questions = data_of(page)
    stock = questions[0]["runs"][2]
    assert stock["prompt"] == questions[0]["question"] and stock["replies"] == [stock["answer"]]
    assert "steps" not in stock


def test_chunks_keep_order_and_divide_no_value() -> None:
    values = [{"place": place, "text": f"{'x' * 50} \ud800 ü \n"} for place in range(20)]
    packed = list(chunks(values, characters=200))
    assert len(packed) > 3 and sum(chunk.lines for chunk in packed) == 20
    read = [value for chunk in packed for value in unpack(chunk.text)]
    assert [value["place"] for value in read] == list(range(20))
    assert read[0]["text"] == f"{'x' * 50} ? ü \n"
    assert list(chunks([])) == []


# --- Traces


def trace_line(sample: dict[str, Any], prompt: str, seconds: float) -> dict[str, Any]:
    record = sample["doc"]["_rag"]
    tokens = {"prompt_tokens": record["prompt_tokens"], "completion_tokens": record["completion_tokens"]}
    asked = {"ask": "Retrieve", "request": "words", "reply": "d1 d2", "passages": ["d1", "d2"], "k": 2, "found": 2}
    steps = [asked, asked, asked, {"ask": "Generate", "request": prompt, "reply": "text", "seconds": seconds, **tokens}]
    return {"task": "ruleqa_i", "id": sample["doc"]["id"], "repeat": 0, "failure": None, "steps": steps}


def write_trace(file: Path, lines: list[dict[str, Any]]) -> bytes:
    content = gzip.compress("".join(json.dumps(line) + "\n" for line in lines).encode())
    file.write_bytes(content)
    return content


def test_steps_come_from_the_trace_of_the_same_run(make_run: Make, tmp_path: Path) -> None:
    make_run(tmp_path / "out", model="standard_rag", n=60, right=0.3, seed=1)
    samples = samples_of(tmp_path)
    right = [trace_line(sample, f"prompt of {i}", sample["doc"]["_rag"]["seconds"]) for i, sample in enumerate(samples)]
    other = [trace_line(sample, "of another run", sample["doc"]["_rag"]["seconds"] + 1) for sample in samples]
    write_trace(tmp_path / "out" / "trace_2026-01-01T00-00-00.jsonl.gz", right[:50])
    write_trace(tmp_path / "out" / "trace_2026-01-02T00-00-00.jsonl.gz", other)
    index, questions = data_of(page_of(read_runs([tmp_path])))
    assert index["traced"] == [True]
    for i, whole in enumerate(questions[:50]):
        steps = whole["runs"][0]["steps"]
        assert [step["ask"] for step in steps] == ["Retrieve"] * 3 + ["Generate"]
        assert steps[3]["request"] == f"prompt of {i}" and "passages" not in steps[0]
    assert all("steps" not in whole["runs"][0] for whole in questions[50:])


def test_a_trace_that_was_cut_gives_the_steps_before_the_cut(
    make_run: Make, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    make_run(tmp_path, model="standard_rag", n=60, right=0.3, seed=1)
    lines = [
        trace_line(sample, f"{i} {hash(i)}", sample["doc"]["_rag"]["seconds"])
        for i, sample in enumerate(samples_of(tmp_path))
    ]
    file = tmp_path / "trace_2026-01-01T00-00-00.jsonl.gz"
    first = write_trace(file, lines[:30])
    file.write_bytes(first + gzip.compress(json.dumps(lines[30]).encode())[:-12])
    _, questions = data_of(page_of(read_runs([tmp_path])))
    assert ["steps" in whole["runs"][0] for whole in questions].count(True) == 30
    assert "was cut" in caplog.text


# --- Texts stay texts


def make_hostile(sample: dict[str, Any]) -> None:
    sample["doc"].update(id=f"{HOSTILE}{sample['doc_id']}", query=HOSTILE, answers=[HOSTILE], slice=HOSTILE)
    sample["doc"]["_rag"].update(prompt=HOSTILE, notes=[HOSTILE])
    sample["doc"]["_rag"]["passages"][0].update(text=HOSTILE, id=HOSTILE, title=HOSTILE)
    sample.update(filtered_resps=[HOSTILE], resps=[[HOSTILE]])


def test_hostile_texts_stay_texts(make_run: Make, tmp_path: Path) -> None:
    make_run(tmp_path / "a", model="standard_rag", n=60, right=0.3, seed=1)
    change_samples(tmp_path, make_hostile)
    (results,) = tmp_path.rglob("results_*.json")
    content = json.loads(results.read_text(encoding="utf-8"))
    content["config"]["model"] = HOSTILE
    results.write_text(json.dumps(content), encoding="utf-8")
    page = page_of(read_runs([tmp_path]))
    index, questions = data_of(page)
    assert index["runs"] == [HOSTILE] and questions[0]["question"] == HOSTILE
    assert questions[0]["texts"][0] == questions[0]["runs"][0]["prompt"] == HOSTILE
    elements = Elements(page)
    assert not elements.named("img") and "<img" not in page and "alert(1)</script" not in page
    assert len([1 for attributes, _ in elements.named("script") if "id" not in attributes]) == 1
    assert all(not name.startswith("on") for _, attributes, _ in elements.elements for name in attributes)
    assert HOSTILE[:9] in elements.named("title")[0][1]


def test_the_page_needs_nothing_else_and_runs_its_own_script_only(page: str) -> None:
    elements = Elements(page)
    assert not [tag for tag, _, _ in elements.elements if tag in ("link", "img", "iframe", "object", "base")]
    assert not [a for _, a, _ in elements.elements if "src" in a or "style" in a or str(a.get("href", "#"))[0] != "#"]
    (policy,) = [a["content"] or "" for a, _ in elements.named("meta") if a.get("http-equiv")]
    assert policy.startswith("default-src 'none'; ")
    scripts = [text for attributes, text in elements.named("script") if "id" not in attributes]
    for kind, text in (("script", scripts[0]), ("style", elements.named("style")[0][1])):
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"{kind}-src 'sha256-{digest}'" in policy


def test_the_script_sets_text_only() -> None:
    folder = Path(view_cli.__file__).parent
    script = "".join(file.read_text(encoding="utf-8") for file in folder.glob("*.js"))
    assert "textContent" in script
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|DOMParser|</script", script)


def test_the_summary_has_the_reports_scores(runs: Path, page: str) -> None:
    mean = sum(sample["em"] for sample in samples_of(runs / "b")) / 60
    assert f"<b>{100 * mean:.1f}</b> <small>[" in page
    assert "Differences between runs" in page and "not significant (p = " in page


# --- Command and errors


def test_the_command_writes_the_page(runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "page.html"
    assert view_main([str(runs / "b"), "--out", str(out)]) == 0
    assert capsys.readouterr().out == f"{out}\n"
    assert data_of(out.read_text(encoding="utf-8"))[0]["runs"] == ["standard_rag"]


def test_open_opens_the_page(runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    monkeypatch.setattr("webbrowser.open", lambda url: opened.append(url) or True)
    monkeypatch.chdir(tmp_path)
    assert view_main([str(runs / "b"), "--open"]) == 0
    assert opened == [(tmp_path / "view.html").as_uri()] and (tmp_path / "view.html").is_file()


def test_without_a_browser_it_names_the_page(
    runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("webbrowser.open", lambda url: False)
    assert view_main([str(runs / "b"), "--open", "--out", str(tmp_path / "page.html")]) == 0
    assert f"Open {(tmp_path / 'page.html').as_uri()} yourself" in caplog.text


def test_no_runs(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="contains no results of lm_eval"):
        view_main([str(tmp_path), "--out", str(tmp_path / "page.html")])
    with pytest.raises(UserError, match="does not exist"):
        view_main([str(tmp_path / "runs"), "--out", str(tmp_path / "page.html")])


def test_runs_without_samples(make_run: Make, tmp_path: Path) -> None:
    make_run(tmp_path / "a", model="standard_rag", n=60, right=0.3, seed=1)
    for file in tmp_path.rglob("samples_*.jsonl"):
        file.unlink()
    with pytest.raises(UserError, match=r"samples of ruleqa_i were not logged.*--log_samples"):
        view_main([str(tmp_path / "a"), "--out", str(tmp_path / "page.html")])
    assert not (tmp_path / "page.html").exists()


def test_runs_of_different_tasks(make_run: Make, runs: Path, tmp_path: Path) -> None:
    other = make_run(tmp_path / "other", model="rule_vote", task="ruleqa_f", n=20)
    both = read_runs([runs / "b", other])
    with pytest.raises(UserError, match=r"rule_vote: ruleqa_f; standard_rag: ruleqa_i.*--task"):
        page_of(both)
    assert data_of(page_of(both, "ruleqa_f"))[0]["runs"] == ["rule_vote"]
    with pytest.raises(UserError, match=r"No run has the task 'ruleqa_x'.*ruleqa_i, ruleqa_f"):
        page_of(both, "ruleqa_x")


def test_several_tasks_of_one_run(make_run: Make, tmp_path: Path) -> None:
    make_run(tmp_path / "a", model="rule_vote", task="ruleqa_i", n=20)
    make_run(tmp_path / "b", model="rule_vote", task="ruleqa_f", n=10)
    a, b = read_runs([tmp_path])
    index, questions = data_of(page_of([a, type(b)(a.label, b.task, b.path, b.results, b.samples, b.asked)]))
    assert [row["task"] for row in index["rows"]] == ["ruleqa_i"] * 20 + ["ruleqa_f"] * 10
    assert len(questions) == 30 and index["runs"] == ["rule_vote"]


@pytest.mark.parametrize(
    ("out", "why"),
    [
        ("", "it is a folder"),
        ("none/page.html", "there is no folder"),
        ("/proc/page.html", r"cannot be written: .*Give a file"),
        ("/dev/full", "cannot be written: No space left"),
    ],
)
def test_an_output_that_cannot_be_written(runs: Path, tmp_path: Path, out: str, why: str) -> None:
    if out.startswith("/") and not Path("/dev/full").exists():
        pytest.skip("needs Linux's /proc and /dev/full")
    with pytest.raises(UserError, match=why):
        view_main([str(runs / "b"), "--out", str(tmp_path / out)])


# --- Server


@pytest.fixture
def server(page: str) -> Iterator[str]:
    with page_server(page) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield url_of(server)
        server.shutdown()


def test_the_server_serves_the_page_on_this_machine_only(server: str, page: str) -> None:
    assert server.startswith("http://127.0.0.1:")
    with urllib.request.urlopen(server) as answer:
        assert answer.read().decode() == page
        assert answer.headers["Content-Type"] == "text/html; charset=utf-8"
    for path, headers, status in (("other", {}, 404), ("", {"Host": "example.org"}, 403)):
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(urllib.request.Request(server + path, headers=headers))
        assert refused.value.code == status


def test_a_port_in_use(server: str) -> None:
    with pytest.raises(MachineError, match=r"cannot be used.*--port"):
        page_server("", int(server.rstrip("/").rpartition(":")[2]))


def test_serve_ends_with_ctrl_c(
    runs: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(self: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("http.server.ThreadingHTTPServer.serve_forever", interrupted)
    monkeypatch.setattr("webbrowser.open", lambda url: print("opened", url) or True)
    assert view_main([str(runs / "b"), "--serve", "--open"]) == 0
    said = capsys.readouterr().out.splitlines()
    assert said[0].endswith("(Ctrl-C ends it)") and said[1] == f"opened {said[0].split()[0]}"
