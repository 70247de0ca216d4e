"""RuleRAG-FT and RuleRAG with GPT-3.5: the flow of RuleRAG-ICL, and what each runs with."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from lm_eval_rag.harness import retrieval
from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.harness.core.journal import Journal
from lm_eval_rag.harness.core.parameters import defaults
from lm_eval_rag.harness.generators.spec import EMBEDDED
from lm_eval_rag.harness.plugin.arguments import read_arguments
from lm_eval_rag.harness.plugin.engine import Engine, run
from lm_eval_rag.methods.rulerag_ft import rulerag_ft
from lm_eval_rag.methods.rulerag_gpt35 import rulerag_gpt35
from lm_eval_rag.methods.rulerag_icl import rulerag_icl


@pytest.fixture(autouse=True)
def parts(monkeypatch, tmp_path):
    """A static retriever and a tuned generator, whatever this installation has."""

    def static(corpus, *, adapter: str = "rgft"):
        return retrieval.RETRIEVERS["bm25"](corpus)

    monkeypatch.setitem(retrieval.RETRIEVERS, "static", static)
    monkeypatch.setitem(EMBEDDED, "tiny_rgft", tmp_path)


@pytest.mark.parametrize("method", [rulerag_ft, rulerag_gpt35])
@pytest.mark.parametrize("given", [{}, {"n_rules": 0}, {"k": 3, "documents": 2, "join": "replace", "rules": "random"}])
def test_the_flow_is_that_of_rulerag_icl(method, given, queries, corpus, generator):
    shared = {name: value for name, value in defaults(method).items() if name in defaults(rulerag_icl)}
    assert set(defaults(method)) <= set(defaults(rulerag_icl))
    found = run(method, queries, corpus=corpus, generator=generator, **given)
    prompts = generator.prompts.copy()
    generator.prompts.clear()
    same = run(rulerag_icl, queries, corpus=corpus, generator=generator, **{**shared, **given})
    assert prompts == generator.prompts and [answer for answer, _ in found] == [answer for answer, _ in same]


def test_they_share_the_defaults_of_icl_but_for_gpt35s_shots():
    icl = defaults(rulerag_icl)
    assert defaults(rulerag_ft) == icl and defaults(rulerag_gpt35) == {**icl, "shots": 3} and icl["shots"] == 0
    assert not hasattr(rulerag_icl, "runs_with") and rulerag_ft.__name__ == "rulerag_ft"


def test_ft_runs_with_the_tuned_pair():
    setup = read_arguments("rulerag_ft", rulerag_ft, {})
    assert (setup.corpora.retriever, setup.corpora.options) == ("static", {"adapter": "rgft"})
    assert (setup.generator.spec.name, setup.generator.spec.width) == ("tiny_rgft", 32)


def test_ft_takes_other_checkpoints(tmp_path):
    given = {"retriever_adapter": "org/towers", "gen_pretrained": str(tmp_path)}
    setup = read_arguments("rulerag_ft", rulerag_ft, given)
    assert (setup.corpora.retriever, setup.corpora.options) == ("static", {"adapter": "org/towers"})
    assert (setup.generator.spec.name, setup.generator.spec.arguments) == ("hf", {"pretrained": str(tmp_path)})
    other = read_arguments("rulerag_ft", rulerag_ft, {"retriever": "bm25", "generator": "tiny"})
    assert (other.corpora.retriever, other.corpora.options) == ("bm25", {}) and other.generator.spec.name == "tiny"


def test_ft_without_torch_says_which_extra(monkeypatch):
    from lm_eval_rag.harness.generators import packages

    monkeypatch.setattr(packages, "find_spec", lambda name: None)
    with pytest.raises(UserError, match=r'generator=tiny_rgft needs torch.*pip install -e ".*\[hf\]"'):
        read_arguments("rulerag_ft", rulerag_ft, {})


# --- GPT-3.5


class Chat(BaseHTTPRequestHandler):
    """Answers every chat with the same words and keeps what it was asked."""

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.asked.append((self.path, self.headers["Authorization"], body))
        message = {"role": "assistant", "content": "Town0 Burg\nand more"}
        data = json.dumps({"choices": [{"index": 0, "message": message}]}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *arguments):
        """Nothing on the terminal."""


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    made = ThreadingHTTPServer(("127.0.0.1", 0), Chat)
    made.asked, made.url = [], f"http://127.0.0.1:{made.server_port}/v1/chat/completions"
    threading.Thread(target=made.serve_forever, args=(0.02,), daemon=True).start()
    yield made
    made.shutdown()
    made.server_close()


def test_gpt35_sends_rules_documents_and_three_shots_to_gpt_3_5_turbo(server, queries, corpus, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    setup = read_arguments("rulerag_gpt35", rulerag_gpt35, {"gen_base_url": server.url, "documents": 2})
    setup.corpora.given = corpus
    assert setup.corpora.options == {"adapter": "rgft"}
    engine = Engine(setup.corpora, setup.generator, Journal(None))
    answers = engine.run(setup.bound(), queries)
    assert [answer.text for answer, _ in answers] == ["Town0 Burg"] * len(queries)
    assert len(server.asked) == len(queries)
    heads = set()
    for path, key, body in server.asked:
        assert (path, key, body["model"]) == ("/v1/chat/completions", "Bearer sk-test", "gpt-3.5-turbo")
        ((text,),) = [[message["content"] for message in body["messages"]]]
        assert text.count("Question:") == 4 and text.count("Rules:") >= 1 and text.count("Documents:") == 4
        heads.add(text.rpartition("Documents:")[0])
    assert len(heads) == 1  # the same three examples before every question


def test_gpt35_without_a_key_says_so(monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(UserError, match="needs the environment variable OPENAI_API_KEY"):
        read_arguments("rulerag_gpt35", rulerag_gpt35, {})


def test_gpt35_takes_another_server_without_a_key(server, monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    given = {"generator": "local-chat-completions", "gen_base_url": server.url, "gen_model": "mine"}
    spec = read_arguments("rulerag_gpt35", rulerag_gpt35, given).generator.spec
    assert spec.arguments == {"base_url": server.url, "model": "mine"}
