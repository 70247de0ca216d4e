"""What the tests of the lm_eval model share: a small task over a small corpus, and a model that answers by a script."""

import json

import pytest

from lm_eval_rag._register import tasks_folder
from lm_eval_rag.harness.plugin.task import RagTask

TOWNS = ["Ulm", "Bonn", "Kiel", "Jena", "Trier", "Celle"]
CONFIG = {
    "task": "visits",
    "test_split": "test",
    "doc_to_text": "Question: {{query}}\nAnswer:",
    "doc_to_target": "{{answers[0]}}",
    "output_type": "generate_until",
    "generation_kwargs": {"until": ["\n"], "max_gen_toks": 8, "do_sample": False},
}


@pytest.fixture(scope="session")
def docs():
    """Six questions; the documents state the first of the two answers of each."""
    return [
        {
            "id": f"q{i}",
            "query": f"what does Person{i} Alba visited ?",
            "time": None,
            "answers": [f"{town} Burg", f"City of {town}"],
            "corpus": None,
        }
        for i, town in enumerate(TOWNS)
    ]


@pytest.fixture(scope="session", autouse=True)
def scripted_lm():
    """An lm_eval model that answers with the last two words of the first document, and keeps its requests."""
    import lm_eval.models  # noqa: F401 - first lm_eval's own, which it registers only while there is none
    from lm_eval.api.model import LM
    from lm_eval.api.registry import register_model

    requests_seen = []

    @register_model("scripted-lm")
    class ScriptedLM(LM):
        seen = requests_seen

        def __init__(self, flavour="plain", batch_size=1, device=None, max_batch_size=None):
            super().__init__()
            self.flavour = flavour

        def tok_encode(self, text):
            return text.split()

        def apply_chat_template(self, history, add_generation_prompt=True):
            return " ".join(f"<{said['role']}> {said['content']}" for said in history) + " <assistant>"

        def generate_until(self, requests, disable_tqdm=False):
            self.seen.extend(request.args for request in requests)
            return [answer_of(request.args[0]) for request in requests]

        def loglikelihood(self, requests):
            raise NotImplementedError

        loglikelihood_rolling = loglikelihood

    return ScriptedLM


def answer_of(prompt):
    _, found, after = prompt.rpartition("Documents:\n")
    return " ".join(after.split("\n")[0].rstrip(".").split()[-2:]) if found else "I don't know"


@pytest.fixture(autouse=True)
def clean(scripted_lm):
    scripted_lm.seen.clear()


@pytest.fixture(scope="session")
def documents(tmp_path_factory):
    path = tmp_path_factory.mktemp("documents") / "visits.jsonl"
    facts = [(f"Person{i} Alba", "visited", f"{town} Burg") for i, town in enumerate(TOWNS)]
    rows = [{"id": f"d{i}", "text": f"{' '.join(fact)}.", "fact": fact} for i, fact in enumerate(facts)]
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return str(path)


@pytest.fixture
def task(docs):
    """``task(...)``: the six questions, or others, as a task of ours."""
    from datasets import Dataset, DatasetDict

    def task(given=docs, **config):
        class Visits(RagTask):
            def download(self, *arguments, **options):
                self.dataset = DatasetDict({"test": Dataset.from_list(given)})

        return Visits(config={**CONFIG, **config})

    return task


@pytest.fixture
def evaluate(documents, task, undescribed):
    """``evaluate(method, arguments, ...)``: the task above with a method over the documents above."""
    from lm_eval import simple_evaluate
    from lm_eval.tasks import TaskManager

    def evaluate(method="standard_rag", arguments=(), *, tasks=None, **options):
        base = {"generator": "scripted-lm", "corpus": documents, "journal": "off"}
        given = {key: value for key, value in {**base, **dict(arguments)}.items() if value is not None}
        manager = TaskManager(include_defaults=False, include_path=str(tasks_folder()))
        return simple_evaluate(model=method, model_args=given, tasks=tasks or [task()], task_manager=manager, **options)

    return evaluate
