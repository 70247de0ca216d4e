"""Search-R1's prompt as a prompt file, from made-up files of the shape of theirs: nothing of theirs is here."""

from __future__ import annotations

import sys
import tomllib
from hashlib import sha256
from pathlib import Path

import pytest

from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.methods.prompts.worded import wordings

sys.path.insert(0, str(Path(__file__).parents[2] / "scripts"))

import search_r1_prompt
from search_r1_prompt import main, prompt_file, texts_at

INFER = '''
template = '\\n\\n{output_text}<information>{search_results}</information>\\n\\n'
prompt = f"""Find it. \\
Say {{so}} or "no". Question: {question}\\n"""
if tokenizer.chat_template:
    prompt = tokenizer.apply_chat_template([{"role": "user", "content": prompt}], tokenize=False)
prompt += template.format(output_text=output_text, search_results=search(query))
'''
GENERATION = """
class Manager:
    def told(self, kind, search_results, next_obs):
        if kind == 'answer':
            next_obs.append('')
        elif kind == 'search':
            next_obs.append(f'\\n\\n<information>{search_results.pop(0).strip()}</information>\\n\\n')
        else:
            next_obs.append(f'\\nI wrote no call. \\
Once more.\\n')
        dones.append(1)

    def shown(self, results):
        format_reference = ''
        for idx, (title, text) in enumerate(results):
            format_reference += f"Doc {idx+1}(Title: {title}) {text}\\n"
"""


def write(folder, infer=INFER, generation=GENERATION):
    (folder / "search_r1" / "llm_agent").mkdir(parents=True)
    (folder / "infer.py").write_text(infer)
    (folder / "search_r1" / "llm_agent" / "generation.py").write_text(generation)
    return folder


@pytest.fixture
def pinned(monkeypatch):
    """The made-up files in place of the authors'."""
    texts = zip(search_r1_prompt.FILES, (INFER, GENERATION), strict=True)
    hashes = {path: (sha256(text.encode()).hexdigest(), len(text)) for path, text in texts}
    monkeypatch.setattr(search_r1_prompt, "FILES", hashes)


def test_the_prompt_is_as_they_show_it(tmp_path):
    path = tmp_path / "p.toml"
    path.write_text(prompt_file(INFER, GENERATION))
    steps = wordings("search_agent", str(path))
    assert steps["search_r1"].prompt(question="who?").render() == 'Find it. Say {so} or "no". Question: who?\n'
    results = ["Vale\nA book.\nOf Bo.", "Norn\nA town."]
    assert steps["search_r1_results"].prompt(results=results).render().strip() == (
        '<information>Doc 1(Title: "Vale") A book.\nOf Bo.\nDoc 2(Title: "Norn") A town.</information>'
    )
    assert steps["search_r1_malformed"].prompt(results=[], reply="x").render().strip() == "I wrote no call. Once more."
    assert steps["plain"].text == wordings("search_agent")["plain"].text
    assert {step.template.version for step in steps.values()} == {"search_r1-a14dc3a"}
    assert set(tomllib.loads(path.read_text())) == {"version", "search_r1", "search_r1_results", "search_r1_malformed"}


@pytest.mark.parametrize(
    ("infer", "generation", "message"),
    [
        (INFER.replace("prompt = f", "text = f"), GENERATION, "0 texts where the prompt should be"),
        (f'{INFER}\nprompt = "other"', GENERATION, "2 texts where the prompt should be"),
        (INFER, GENERATION.replace("idx+1", "number"), "0 texts where the form of a result should be"),
        (INFER, GENERATION.replace("pop(0).strip()", "pop()"), "0 texts where the form of the results should be"),
        (INFER, GENERATION.replace("\\nI wrote no call. \\\nOnce more.\\n", ""), "0 texts where the notice should be"),
    ],
)
def test_another_shape_is_refused(infer, generation, message):
    with pytest.raises(UserError, match=message):
        prompt_file(infer, generation)


def test_fields_that_are_not_known_are_no_text():
    source = 'a = f"{x} {y}"\na = f"{x} {{z}}"\na = b + "c"\na = 3\na.b("q")\nc += "d"'
    assert texts_at(source, "a =", {"x": "{one}"}) == ["{one} {{z}}"]
    assert texts_at(source, "a.b", {}) == ["q"] and texts_at(source, "c +=", {}) == ["d"]


def test_a_checkout_is_read_and_checked(tmp_path, monkeypatch, pinned, capsys):
    out = tmp_path / "p.toml"
    monkeypatch.setattr(sys, "argv", ["x", "--checkout", str(write(tmp_path / "good")), "--out", str(out)])
    main()
    assert out.read_text() == prompt_file(INFER, GENERATION) and f"prompt_file={out}" in capsys.readouterr().out
    other = write(tmp_path / "other", generation=GENERATION + "\n")
    monkeypatch.setattr(sys, "argv", ["x", "--checkout", str(other), "--out", str(tmp_path / "no.toml")])
    with pytest.raises(SystemExit, match=r"generation.py is not that of the pinned commit.*git checkout a14dc3a4"):
        main()
    monkeypatch.setattr(sys, "argv", ["x", "--checkout", str(tmp_path)])
    with pytest.raises(SystemExit, match=r"infer.py cannot be read: it does not exist"):
        main()
    assert not (tmp_path / "no.toml").exists()


def test_without_a_checkout_the_pinned_files_are_fetched(tmp_path, monkeypatch, pinned):
    mirror = tmp_path / "mirror" / "search_r1"
    mirror.mkdir(parents=True)
    (mirror / "infer.py").write_text(INFER)
    (mirror / "generation.py").write_text(GENERATION)
    monkeypatch.setenv("LM_EVAL_RAG_MIRROR", str(mirror.parent))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["x"])
    main()
    assert (tmp_path / "search_r1_prompt.toml").read_text() == prompt_file(INFER, GENERATION)
    (mirror / "infer.py").write_text(INFER + " ")
    with pytest.raises(SystemExit, match=r"infer.py is not available: .*different content.*raw.githubusercontent.com"):
        main()
