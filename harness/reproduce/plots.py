"""Plots as inline SVG: curves with intervals, and a matrix of gains. No package is needed, nothing is fetched."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from html import escape

from lm_eval_rag.harness.report.stats import Interval
from lm_eval_rag.harness.report.table import printable
from lm_eval_rag.harness.reproduce.drawings import Drawing, Point

COLOURS = ("#3563c9", "#d1583b", "#2e8b66", "#8a4fbf", "#b8860b", "#4a8fa8", "#c23b80", "#6b6b6b")
INK, RULE = "#1c2330", "#e4e7ec"
WIDTH, HEIGHT = 520, 330
LEFT, RIGHT, TOP, BOTTOM = 46, 14, 14, 44


def svg(drawing: Drawing) -> str:
    """The plot of a drawing."""
    return _matrix(drawing) if drawing.plot.kind == "banks" else _curves(drawing)


def _curves(drawing: Drawing) -> str:
    curves = {name: _scaled(points, drawing.plot.relative) for name, points in drawing.curves.items()}
    xs = sorted({point.x for points in curves.values() for point in points})
    highest = max((y for points in curves.values() for point in points for y in _ys(point)), default=1.0)
    top = _ceiling(highest)
    place = math.log if drawing.plot.log else float
    first, last = place(xs[0]), place(xs[-1])

    def x_of(x: float) -> float:
        share = (place(x) - first) / (last - first) if last > first else 0.5
        return LEFT + 12 + share * (WIDTH - LEFT - RIGHT - 24)

    def y_of(y: float) -> float:
        return TOP + (1 - max(0.0, y) / top) * (HEIGHT - TOP - BOTTOM)

    parts = [*_grid(top, y_of), *_ticks(xs, x_of), _label(drawing.plot.x_label, drawing.plot.relative)]
    for number, points in enumerate(curves.values()):
        parts += _curve(points, COLOURS[number % len(COLOURS)], x_of, y_of)
    keys = "".join(
        f'<span class="key"><i style="background:{COLOURS[i % len(COLOURS)]}"></i>{_safe(name)}</span>'
        for i, name in enumerate(curves)
    )
    if any(point.paper is not None for points in curves.values() for point in points):
        keys += '<span class="key">dashed: the paper</span>'
    return f'{_open(WIDTH, HEIGHT, drawing)}{"".join(parts)}</svg><div class="keys">{keys}</div>'


def _scaled(points: Sequence[Point], relative: bool) -> list[Point]:
    """In percent; where ``relative``, of the curve's best."""
    best = max((point.ours.mean for point in points if point.ours), default=0.0) if relative else 1.0
    factor = 100 / best if best else 0.0
    scaled = []
    for point in points:
        one = point.ours
        low, high = (end and end * factor for end in (one.low, one.high)) if one else (None, None)
        ours = one and Interval(one.mean * factor, low, high, one.n)
        scaled.append(Point(point.x, ours, None if relative else point.paper))
    return scaled


def _ys(point: Point) -> Iterable[float]:
    if point.ours:
        yield point.ours.mean if point.ours.high is None else point.ours.high
    if point.paper is not None:
        yield point.paper


def _ceiling(value: float) -> float:
    """The least of 5, 10, 20, 25, 40, 50, 60, 80, 100 and so on that is not below the value."""
    return next((top for top in (1, 2, 5, 10, 20, 30, 40, 50, 60, 80, 100) if value <= top), 20 * math.ceil(value / 20))


def _grid(top: float, y_of: Callable[[float], float]) -> Iterable[str]:
    for step in range(6):
        y = top * step / 5
        at = y_of(y)
        yield f'<line stroke="{RULE}" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{at:.1f}" y2="{at:.1f}"/>'
        yield _text(LEFT - 7, at + 4, f"{y:g}", anchor="end")


def _ticks(xs: Sequence[float], x_of: Callable[[float], float]) -> Iterable[str]:
    for x in xs:
        yield _text(x_of(x), HEIGHT - BOTTOM + 18, f"{x:g}")


def _label(text: str, relative: bool) -> str:
    shown = text + (" (y: percent of the curve's best)" if relative else "")
    return _text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 8, shown)


def _curve(
    points: Sequence[Point], colour: str, x_of: Callable[[float], float], y_of: Callable[[float], float]
) -> Iterable[str]:
    ours = [(x_of(point.x), point.ours) for point in points if point.ours]
    path = " ".join(f"{x:.1f},{y_of(one.mean):.1f}" for x, one in ours)
    yield f'<polyline fill="none" stroke="{colour}" stroke-width="2" points="{path}"/>' if len(ours) > 1 else ""
    for x, one in ours:
        if one.low is not None and one.high is not None:
            ends = f'y1="{y_of(one.low):.1f}" y2="{y_of(one.high):.1f}"'
            yield f'<line stroke="{colour}" x1="{x:.1f}" x2="{x:.1f}" {ends}/>'
        yield f'<circle cx="{x:.1f}" cy="{y_of(one.mean):.1f}" r="3.5" fill="{colour}"/>'
    theirs = [(x_of(point.x), y_of(point.paper)) for point in points if point.paper is not None]
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in theirs)
    if len(theirs) > 1:
        yield f'<polyline fill="none" stroke="{colour}" stroke-dasharray="5 4" points="{path}"/>'
    for x, y in theirs:
        yield f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="none" stroke="{colour}"/>'


def _matrix(drawing: Drawing) -> str:
    """A square for each pair of parts: our gain in points, and the paper's beneath it."""
    size, left, top = 92, 78, 52
    most = max((abs(100 * one.mean) for row in drawing.gains for one in row if one), default=1.0) or 1.0
    parts = [
        _text(left, 16, "tested on the questions of", anchor="start"),
        _text(left - 8, top - 10, "trained on", anchor="end"),
    ]
    for i, name in enumerate(drawing.names):
        middle = size * i + size / 2
        parts += [_text(left - 8, top + middle + 4, name, anchor="end"), _text(left + middle, top - 10, name)]
        for j, one in enumerate(drawing.gains[i]):
            parts += _square(one, drawing.paper[i][j], left + size * j, top + size * i, size, most)
    whole = size * len(drawing.names) + 8
    return f"{_open(left + whole, top + whole, drawing)}{''.join(parts)}</svg>"


def _square(one: Interval | None, paper: float | None, x: int, y: int, size: int, most: float) -> Iterable[str]:
    gain = 100 * one.mean if one else 0.0
    colour = "46,139,102" if gain >= 0 else "209,88,59"
    shade = 0.08 + 0.6 * abs(gain) / most if one else 0.0
    side, middle = size - 4, x + size / 2
    fill = f'fill="rgb({colour})" fill-opacity="{shade:.2f}"'
    yield f'<rect x="{x + 2}" y="{y + 2}" width="{side}" height="{side}" rx="6" {fill}/>'
    if one:
        yield _text(middle, y + 36, f"{gain:+.1f}", size=17, fill=INK)
        if one.low is not None and one.high is not None:
            yield _text(middle, y + 53, f"{100 * one.low:.1f} … {100 * one.high:.1f}", size=10, fill=INK)
    if paper is not None:
        yield _text(middle, y + 74, f"paper {paper:+.1f}", size=10, fill=INK)


def _text(x: float, y: float, text: str, *, size: int = 11, anchor: str = "middle", fill: str = "#667085") -> str:
    place = f'x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"'
    return f'<text {place} font-size="{size}" font-family="system-ui, sans-serif" fill="{fill}">{_safe(text)}</text>'


def _safe(text: str) -> str:
    return escape(printable(text))


def _open(width: float, height: float, drawing: Drawing) -> str:
    title = _safe(f"{drawing.plot.title}, {drawing.task}")
    size = f'viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="{title}" {size}>'
