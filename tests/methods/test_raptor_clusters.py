"""RAPTOR's leaves and clusters against formulas written anew: BIC, membership, tokens; UMAP itself, once."""

from __future__ import annotations

import math

import numpy as np
import pytest

from lm_eval_rag.methods.raptor_parts import clusters
from lm_eval_rag.methods.raptor_parts.clusters import fitted, fitting, memberships, reduced, soft_clusters
from lm_eval_rag.methods.raptor_parts.leaves import SPLITS, stripped_sentences, whole_sentences

pytest.importorskip("sklearn", reason="needs the extra raptor")
OPTIONS = {"dimensions": 6, "threshold": 0.1, "seed": 0}
MOST = clusters.MOST  # before the stand-in of the other tests, which is 8


def blobs(*sizes: int, seed: int = 0) -> np.ndarray:
    """Points on a line around 0, 10, 20 ...; in more dimensions few points have a singular covariance and win by it."""
    random = np.random.default_rng(seed)
    return np.concatenate([random.normal(10 * i, 0.5, (size, 1)) for i, size in enumerate(sizes)])


# --- leaves


TEXT = "Dr. Moss read 3.5 books. She liked one! Did Bo write it?\nYes."


@pytest.mark.parametrize(
    ("tokens", "chunks"),
    [
        (100, ["Dr. Moss read 3.5 books. She liked one! Did Bo write it? Yes."]),
        (13, ["Dr. Moss read 3.5 books. She liked one!", "Did Bo write it? Yes."]),
        (3, ["Dr. Moss read 3.5 books.", "She liked one!", "Did Bo write it?", "Yes."]),
    ],
)
def test_a_leaf_holds_whole_sentences(tokens, chunks):
    assert whole_sentences(TEXT, tokens) == chunks


def test_the_authors_code_loses_stops_and_splits_at_commas():
    assert stripped_sentences("Ada read. Bo wrote!", 100) == ["Ada read Bo wrote"]
    assert stripped_sentences("one two, three four; five six", 3) == ["one two", "three four", "five six"]
    beside = "Ada read. One two, three four; five six, and seven. Bo wrote. Cy read it."
    leaves = ["One two three four", "five six and seven", "Ada read Bo wrote", "Cy read it"]
    assert stripped_sentences(beside, 5) == leaves
    assert whole_sentences("one two, three four; five six", 3) == ["one two, three four; five six"]


@pytest.mark.parametrize("variant", SPLITS)
def test_no_word_is_lost_and_blank_texts_have_no_leaves(variant):
    split = SPLITS[variant]
    words = ["Ada", "read", "a", "book", "that", "Bo", "wrote", "in", "Ulm", "and", "Cy", "printed", "in", "Bonn"]
    for tokens in (1, 4, 100):
        assert " ".join(split(" ".join(words), tokens)).split() == words
    assert split("", 10) == split(" \n\n", 10) == []


# --- mixtures


def bic_by_hand(mixture, points) -> float:
    """-2 ln L + p ln N, where each full Gaussian of d dimensions has d + d (d + 1) / 2 parameters, and its weight."""
    count, d = points.shape
    logs = []
    for weight, mean, covariance in zip(mixture.weights_, mixture.means_, mixture.covariances_, strict=True):
        off = points - mean
        distance = np.einsum("ij,jk,ik->i", off, np.linalg.inv(covariance), off)
        logs.append(math.log(weight) - 0.5 * (distance + np.linalg.slogdet(2 * math.pi * covariance)[1]))
    likelihood = np.logaddexp.reduce(np.array(logs), axis=0).sum()
    parameters = len(logs) * (d + d * (d + 1) / 2) + len(logs) - 1
    return float(-2 * likelihood + parameters * math.log(count))


@pytest.mark.parametrize("sizes", [(150,), (80, 90), (50, 60, 70)])
def test_the_number_of_clusters_minimises_bic(sizes):
    from sklearn.mixture import GaussianMixture

    points = blobs(*sizes)
    chosen = fitted(points, seed=3)
    assert chosen.n_components == len(sizes)
    by_hand = {
        n: bic_by_hand(GaussianMixture(n_components=n, random_state=3).fit(points), points)
        for n in range(1, clusters.MOST)
    }
    assert chosen.n_components == min(by_hand, key=by_hand.__getitem__)
    assert chosen.bic(points) == pytest.approx(by_hand[chosen.n_components])


def test_at_most_49_clusters_are_tried(monkeypatch):
    tried = []

    class Mixture:
        def __init__(self, n_components, random_state):
            tried.append(n_components)

        def fit(self, points):
            return self

        def bic(self, points):
            return 0.0

    monkeypatch.setattr("sklearn.mixture.GaussianMixture", Mixture)
    monkeypatch.setattr(clusters, "MOST", MOST)
    fitted(np.zeros((200, 2)), 0)
    assert tried == list(range(1, 50))
    tried.clear()
    fitted(np.zeros((4, 2)), 0)
    assert tried == [1, 2, 3]


def test_membership_is_a_probability_over_the_threshold():
    probabilities = np.array([[0.9, 0.1, 0.0], [0.3, 0.5, 0.2], [0.11, 0.05, 0.84], [0.1, 0.1, 0.8]])
    assert memberships(probabilities, 0.1) == [(0, 1, 2), (1,), (1, 2, 3)]
    assert memberships(probabilities, 0.5) == [(0,), (1,), (2, 3)]
    assert memberships(probabilities, 0.85) == [(0,), (1,), (2, 3)]  # the likeliest cluster, if it is in none
    assert memberships(probabilities, 0.85, keep=False) == [(0,)]


# --- clusters


def test_global_clusters_then_local_ones(monkeypatch):
    """The stand-in for UMAP sees one column of all points and another of a part."""
    points = np.concatenate([blobs(120, 120), np.tile(blobs(60, 60, seed=1), (2, 1))], axis=1)
    asked = []

    def kept(vectors, dimensions, neighbours, seed):
        asked.append((len(vectors), dimensions, neighbours, seed))
        return vectors[:, :1] if len(vectors) == 240 else vectors[:, 1:]

    monkeypatch.setattr(clusters, "reduced", kept)
    found = soft_clusters(points, dimensions=6, threshold=0.1, seed=5)
    assert sorted(found) == [tuple(range(i, i + 60)) for i in (0, 60, 120, 180)]
    assert asked == [(240, 6, 15, 5), (120, 6, 10, 5), (120, 6, 10, 5)]  # sqrt(239) = 15.5 neighbours, then 10


@pytest.mark.parametrize(("count", "expected"), [(0, []), (1, [(0,)]), (3, [(0, 1, 2)])])
def test_too_few_for_umap_are_one_cluster(count, expected):
    assert soft_clusters(np.zeros((count, 4), np.float32), **OPTIONS) == expected


def test_large_clusters_are_clustered_again(monkeypatch):
    monkeypatch.setattr(clusters, "reduced", lambda vectors, *_: vectors)
    points, whole = blobs(60, 60), (tuple(range(120)),)
    assert fitting(whole, points, [5] * 120, 600, **OPTIONS) == list(whole)
    assert sorted(fitting(whole, points, [5] * 120, 300, **OPTIONS)) == [tuple(range(60)), tuple(range(60, 120))]


def test_points_that_coincide_are_one_cluster(monkeypatch):
    monkeypatch.setattr(clusters, "reduced", lambda vectors, *_: vectors)
    assert soft_clusters(np.ones((30, 6), np.float32), **OPTIONS) == [tuple(range(30))]


def test_what_does_not_get_smaller_is_halved_until_it_fits():
    """The authors' code would cluster it without end."""
    points = np.zeros((8, 2), np.float32)
    parts = fitting([tuple(range(8))], points, [10] * 8, 25, dimensions=9, threshold=0.1, seed=0)
    assert parts == [(0, 1), (2, 3), (4, 5), (6, 7)]
    assert fitting([(0, 1)], points, [99, 99], 25, dimensions=9, threshold=0.1, seed=0) == [(0,), (1,)]


def test_umap_keeps_groups_apart_and_repeats_itself(monkeypatch):
    """UMAP itself, on the fewest nodes that it is asked for and on two groups of 20.

    Three of its functions run as the Python that they are written in: numba would compile them for 20 seconds.
    """
    umap_ = pytest.importorskip("umap.umap_", reason="needs the extra raptor")
    for name in ("smooth_knn_dist", "fast_knn_indices", "compute_membership_strengths"):
        monkeypatch.setattr(umap_, name, getattr(umap_, name).py_func)
    monkeypatch.setattr(clusters, "reduced", reduced)
    random = np.random.default_rng(0)
    few = random.normal(size=(12, 16)).astype(np.float32)
    assert reduced(few, 10, 3, 0).shape == (12, 10)
    groups = np.concatenate([random.normal(0, 0.1, (20, 16)) + np.eye(16)[i] * 5 for i in (0, 1)]).astype(np.float32)
    assert (reduced(groups, 10, 6, 1) == reduced(groups, 10, 6, 1)).all()
    found = soft_clusters(groups, dimensions=10, threshold=0.1, seed=1)
    assert set().union(*found) == set(range(40))
    assert all(max(cluster) < 20 or min(cluster) >= 20 for cluster in found)
