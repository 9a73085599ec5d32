"""Draws `bench/curve.py`: sizes and milliseconds, both on logarithmic axes, as an SVG that reads on light and dark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import log10

WIDTH, HEIGHT = 720, 380
LEFT, RIGHT, TOP, BOTTOM = 70, 150, 40, 60
FROM_N, TO_N = 100, 100_000
FROM_MS, TO_MS = 0.1, 100.0
COLOURS = ("#0f8b8d", "#d1495b", "#8d6a9f")

Points = Sequence[tuple[int, float]]

STYLE = """text{font:13px system-ui,sans-serif;fill:#57606a}.t{font-size:15px;font-weight:600}
.g{stroke:#8c959f;stroke-opacity:.25}polyline{fill:none;stroke-width:2.5}"""


def draw(figures: Mapping[str, Points]) -> str:
    """The picture of CPU per task over the number of tasks, one line for each name."""
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img"',
        f' aria-label="{_described(figures)}"><style>{STYLE}</style>',
        f'<text class="t" x="{LEFT}" y="22">CPU per verified task, ms</text>',
        *_grid(),
        *[
            part
            for colour, (name, points) in zip(COLOURS, figures.items(), strict=False)
            for part in _line(colour, name, points)
        ],
        f'<text x="{_x(FROM_N)}" y="{HEIGHT - 14}">tasks in one run</text></svg>\n',
    ]
    return "\n".join(parts)


def _described(figures: Mapping[str, Points]) -> str:
    said = [f"{name}: " + ", ".join(f"{ms:g} ms at {n:,}" for n, ms in points) for name, points in figures.items()]
    return "CPU per task. " + "; ".join(said)


def _grid() -> list[str]:
    lines = []
    for n in (100, 1_000, 10_000, 100_000):
        lines.append(f'<line class="g" x1="{_x(n)}" x2="{_x(n)}" y1="{TOP}" y2="{HEIGHT - BOTTOM}"/>')
        lines.append(f'<text x="{_x(n)}" y="{HEIGHT - BOTTOM + 20}" text-anchor="middle">{n:,}</text>')
    for ms in (0.1, 1, 10, 100):
        lines.append(f'<line class="g" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{_y(ms)}" y2="{_y(ms)}"/>')
        lines.append(f'<text x="{LEFT - 8}" y="{_y(ms) + 4}" text-anchor="end">{ms:g}</text>')
    return lines


def _line(colour: str, name: str, points: Points) -> list[str]:
    places = " ".join(f"{_x(n)},{_y(ms)}" for n, ms in points)
    last_n, last_ms = points[-1]
    dots = [f'<circle cx="{_x(n)}" cy="{_y(ms)}" r="4" fill="{colour}"/>' for n, ms in points]
    label = f'<text x="{_x(last_n) + 10}" y="{_y(last_ms) + 4}" style="fill:{colour}">{name} {last_ms:.2g} ms</text>'
    return [f'<polyline points="{places}" stroke="{colour}"/>', *dots, label]


def _x(n: float) -> float:
    return round(LEFT + (WIDTH - LEFT - RIGHT) * log10(n / FROM_N) / log10(TO_N / FROM_N), 1)


def _y(ms: float) -> float:
    return round(HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * log10(ms / FROM_MS) / log10(TO_MS / FROM_MS), 1)
