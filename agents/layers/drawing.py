"""A graph of layers for people: as text, as a Mermaid flowchart, as SVG. Nothing else is needed to draw it."""

from __future__ import annotations

from xml.sax.saxutils import escape

from dagbok.agents.layers.schemas import CompositorConfig

WIDTH, HEIGHT, GAP, MARGIN, BEND = 240, 44, 28, 20, 26
"""Sizes in SVG, in pixels."""


def as_text(config: CompositorConfig) -> str:
    """One line a node, in the order in which they are entered, with what each depends on."""
    lines = []
    for number, each in enumerate(config.layers, 1):
        deps = ", ".join(key if key == target else f"{key}={target}" for key, target in each.deps.items())
        lines.append(f"{number}. {each.name} ({each.type})" + (f" <- {deps}" if deps else ""))
    return "\n".join(lines)


def as_mermaid(config: CompositorConfig) -> str:
    """A flowchart: an arrow from a node to each that depends on it, with the name of the dependency."""
    ids = {each.name: f"n{number}" for number, each in enumerate(config.layers)}
    lines = ["flowchart TD"]
    lines += [f'    {ids[each.name]}["{_mermaid(each.name)}<br/>{_mermaid(each.type)}"]' for each in config.layers]
    for each in config.layers:
        for key, target in each.deps.items():
            if target in ids:
                lines.append(f'    {ids[target]} -->|"{_mermaid(key)}"| {ids[each.name]}')
    return "\n".join(lines)


def as_svg(config: CompositorConfig) -> str:
    """Boxes from top to bottom in the order of entry, with dependencies as arcs on the right."""
    tops = {each.name: MARGIN + number * (HEIGHT + GAP) for number, each in enumerate(config.layers)}
    longest = max((len(config.layers) - 1, 1))
    width, height = MARGIN * 2 + WIDTH + BEND * (longest + 4), MARGIN * 2 + len(tops) * (HEIGHT + GAP)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" font-family="sans-serif">',
        '<defs><marker id="to" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" markerHeight="8" orient="auto">'
        '<path d="M0 0 8 4 0 8z"/></marker></defs>',
    ]
    for each in config.layers:
        parts += _box(each.name, each.type, tops[each.name])
        parts += [_arc(key, tops[to], tops[each.name]) for key, to in each.deps.items() if to in tops]
    return "\n".join([*parts, "</svg>"])


def _box(name: str, kind: str, top: int) -> list[str]:
    return [
        f'<rect x="{MARGIN}" y="{top}" width="{WIDTH}" height="{HEIGHT}" rx="6" fill="#eef" stroke="#336"/>',
        f'<text x="{MARGIN + 10}" y="{top + 18}" font-size="14">{escape(name)}</text>',
        f'<text x="{MARGIN + 10}" y="{top + 35}" font-size="11" fill="#555">{escape(kind)}</text>',
    ]


def _arc(key: str, start: int, end: int) -> str:
    right, out = MARGIN + WIDTH, MARGIN + WIDTH + BEND * max(1, abs(end - start) // (HEIGHT + GAP))
    y1, y2 = start + HEIGHT * 2 // 3, end + HEIGHT // 3
    return (
        f'<path d="M{right} {y1} C{out} {y1} {out} {y2} {right} {y2}" fill="none" stroke="#336" marker-end="url(#to)">'
        f"<title>{escape(key)}</title></path>"
    )


def _mermaid(text: str) -> str:
    return text.replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;")
