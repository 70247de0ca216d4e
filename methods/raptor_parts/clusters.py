"""Soft clusters of vectors (section 3, "Clustering Algorithm"): UMAP, Gaussian mixtures, BIC; global, then local."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from lm_eval_rag.harness.common.extras import need

LOCAL_NEIGHBOURS = 10
MOST = 50  # clusters of one mixture: those tried are 1 to 49, as in the authors' code
Cluster = tuple[int, ...]


def check_packages() -> None:
    """Raise a UserError unless scikit-learn and UMAP are installed."""
    need("The method raptor", "raptor", "sklearn", "umap")


def soft_clusters(vectors: Any, *, dimensions: int, threshold: float, seed: int, keep: bool = True) -> list[Cluster]:
    """Clusters of the rows of ``vectors``, each once; a row may be in several.

    Args:
        vectors: float32 (N, D).
        dimensions: What UMAP reduces to; a part of at most ``dimensions`` + 1 rows is one cluster.
        threshold: A row is in the clusters to which it belongs with a higher probability.
        keep: Whether a row that belongs to none so surely joins its likeliest cluster; otherwise it is left out.
    """
    if len(vectors) <= dimensions + 1:
        return [tuple(range(len(vectors)))] if len(vectors) else []
    near = int((len(vectors) - 1) ** 0.5)
    clusters: dict[Cluster, None] = {}
    for part in _mixed(reduced(vectors, min(dimensions, len(vectors) - 2), near, seed), threshold, seed, keep):
        if len(part) <= dimensions + 1:
            clusters[part] = None
            continue
        local = reduced(vectors[list(part)], dimensions, LOCAL_NEIGHBOURS, seed)
        for cluster in _mixed(local, threshold, seed, keep):
            clusters[tuple(part[place] for place in cluster)] = None
    return list(clusters)


def reduced(vectors: Any, dimensions: int, neighbours: int, seed: int) -> Any:
    """The vectors in few dimensions, by UMAP with the cosine metric; the same in every run."""
    import umap

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # says that a seed means one thread
        mapper = umap.UMAP(n_neighbors=max(2, neighbours), n_components=dimensions, metric="cosine", random_state=seed)
        return mapper.fit_transform(vectors)


def _mixed(points: Any, threshold: float, seed: int, keep: bool) -> list[Cluster]:
    """The clusters of the mixture with the lowest BIC."""
    points = points.astype("float64")  # in float32 clusters far apart have no covariance
    return memberships(fitted(points, seed).predict_proba(points), threshold, keep)


def fitted(points: Any, seed: int) -> Any:
    """The Gaussian mixture with the lowest BIC; of equal ones that with fewer components.

    Numbers of components that cannot be fitted, because points coincide, are left out.
    """
    from sklearn.mixture import GaussianMixture

    mixtures = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of fits that did not converge; their BIC says how good they are
        for n in range(1, max(2, min(MOST, len(points)))):
            with suppress(ValueError):
                mixtures.append(GaussianMixture(n_components=n, random_state=seed).fit(points))
        return min(mixtures, key=lambda mixture: mixture.bic(points))


def memberships(probabilities: Any, threshold: float, keep: bool = True) -> list[Cluster]:
    """The members of each cluster by P(cluster | row), float (N, K); clusters without members are left out."""
    members = probabilities > threshold
    if keep:
        members[range(len(members)), probabilities.argmax(axis=1)] = True
    return [tuple(column.nonzero()[0].tolist()) for column in members.T if column.any()]


def fitting(
    clusters: Sequence[Cluster], vectors: Any, sizes: Sequence[int], tokens: int, **options: Any
) -> list[Cluster]:
    """The clusters whose texts have at most ``tokens`` tokens together; larger ones are clustered again.

    A cluster that does not become smaller by that is halved, in order, so that this ends.
    """
    small: dict[Cluster, None] = {}
    left = list(clusters)[::-1]
    while left:
        cluster = left.pop()
        if len(cluster) == 1 or sum(sizes[row] for row in cluster) <= tokens:
            small[cluster] = None
            continue
        parts = [tuple(cluster[i] for i in part) for part in soft_clusters(vectors[list(cluster)], **options)]
        if any(len(part) == len(cluster) for part in parts):
            half = len(cluster) // 2
            parts = [cluster[:half], cluster[half:]]
        left += parts[::-1]
    return list(small)
