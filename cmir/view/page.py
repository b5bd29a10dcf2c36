"""A mask as one HTML page: no network, no dependency, and the rule evaluated in the browser.

What is in it: the mask, coloured by slot, clause or tile state; why any pair is visible or not; a slider for every
scalar and a field for every table; both interval tables; the IR of every stage beside the source, lines that come from
the same clause marked together. Names and texts of a spec are escaped, and the page's policy runs its own script only.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from html import escape
from importlib.resources import files
from typing import Any

from cmir.dialects.maskspec import SpecOp
from cmir.errors import CmirError
from cmir.interp.domain import TableValue
from cmir.view.colours import HIDDEN, INK, PALETTE
from cmir.view.javascript import literal, program
from cmir.view.load import Lowered, Stage
from cmir.view.provenance import clause_lines, keys_of_lines, keys_of_source, lines_of
from cmir.view.scene import Scene

LARGEST = 1 << 20
"""Pairs of the largest page: a browser evaluates them all again when a slider moves."""


def page(scene: Scene, lowered: Lowered, tile: tuple[int, int], policy: bool = True) -> str:
    """The page of a scene, as text.

    Args:
        scene: the mask and its metadata to begin with.
        lowered: where its stages and its source come from.
        tile: rows and columns of a tile.
        policy: whether the page's content security policy is in it, which lets no other script run.

    Raises:
        CmirError: there are more pairs than a page is good for.
    """
    if scene.rows * scene.cols > LARGEST:
        raise CmirError(
            f"{scene.rows} x {scene.cols} pairs are too many for a page; at most {LARGEST}: choose smaller lengths, or "
            "make a picture (.png)"
        )
    values = {
        name: value.values.tolist() if isinstance(value, TableValue) else int(value)
        for name, value in scene.env.items()
    }
    start: dict[str, Any] = {"values": values, "tile": list(tile)}
    script = "\n".join(
        [
            '"use strict";',
            f"const mask = {program(scene.spec, scene.tables, scene.words)};",
            f"const start = {literal(start)};",
            f"const style = {literal({'palette': PALETTE, 'hidden': HIDDEN, 'ink': INK})};",
            _web("model.js"),
            _web("page.js"),
        ]
    )
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    allowed = f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'"
    title = escape(f"@{scene.name}")
    return "\n".join(
        [
            "<!doctype html>",
            '<html lang="en">',
            '<head><meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{allowed}">' if policy else "",
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{title}, an attention mask</title>",
            f"<style>\n{_web('page.css')}</style></head>",
            "<body>",
            f"<h1>{title}</h1>",
            f'<p class="faint">{escape(_subtitle(scene))}</p>',
            _TOP.replace("TILE", f"{tile[0]},{tile[1]}"),
            _lists(scene),
            "<h2>From the rule to kernels</h2>",
            '<p class="faint">Point at a line: everything that comes from the same clause lights up. Lines of clauses '
            "that hold for the chosen pair are green.</p>",
            _stages(lowered, scene.surface),
            f"<script>{script}</script>",
            "</body></html>",
            "",
        ]
    )


def _web(name: str) -> str:
    return files("cmir.view").joinpath("web", name).read_text(encoding="utf-8")


def _subtitle(scene: Scene) -> str:
    parts: list[str] = []
    for axis, word in (("rows", "row"), ("cols", "column")):
        table = scene.tables[axis]
        if table.slots is None:
            parts.append(f"no number of intervals a {word}")
        else:
            parts.append(f"{table.slots.data} interval{'s' if table.slots.data != 1 else ''} a {word}")
    statics = [f"{p.name} = {p.value}" for p in scene.surface.parameters if p.value is not None]
    return "; ".join([", ".join(parts), *([f"statics: {', '.join(statics)}"] if statics else [])])


_TOP = """<p id="summary"></p>
<div class="top">
<div>
<div class="board"><canvas id="board"></canvas><canvas id="over" tabindex="0" role="img"
 aria-label="The mask: rows down, columns across. Arrow keys move the chosen pair."></canvas></div>
<p class="legend" id="legend"></p>
<div class="controls"><span class="faint">colour by</span>
<label><input type="radio" name="colour" value="rows" checked> slot of the row</label>
<label><input type="radio" name="colour" value="cols"> slot of the column</label>
<label><input type="radio" name="colour" value="clauses"> clause</label>
<label><input type="radio" name="colour" value="tiles"> tile state</label>
<label>tile <input id="tile" size="7" value="TILE" aria-label="rows and columns of a tile"></label></div>
</div>
<div class="side">
<div class="card"><h3>Metadata <button id="reset" type="button">reset</button></h3>
<div id="metadata"></div><p id="problem" class="no"></p><div id="facts"></div></div>
<div class="card" id="cell"></div>
</div>
</div>"""


def _lists(scene: Scene) -> str:
    out = ['<h2>Interval tables</h2><div class="lists">']
    for axis, title in (("rows", "Rows: the columns that each sees"), ("cols", "Columns: the rows that see each")):
        if axis in scene.tables:
            out.append(
                f'<div><h3>{title}</h3><ul class="formulas mono" id="formulas-{axis}"></ul>'
                f'<div class="lines mono"><table id="list-{axis}"></table></div></div>'
            )
    return "\n".join([*out, "</div>"])


def _stages(lowered: Lowered, surface: SpecOp) -> str:
    clauses = clause_lines(surface, lowered.spec)
    source = _stage(Stage(lowered.name, lowered.text), keys_of_source(lowered.text, surface, clauses), source=True)
    rest = [_stage(stage, keys_of_lines(stage.text)) for stage in lowered.stages]
    return "\n".join(['<div class="stages">', source, *rest, "</div>"])


def _stage(stage: Stage, keys: Sequence[Sequence[str]], source: bool = False) -> str:
    lines = [
        f'<span class="line" data-keys="{escape(" ".join(mine))}">'
        + (f'<span class="number">{n}</span>' if source else "")
        + f"{escape(line)}</span>"
        for n, (line, mine) in enumerate(zip(lines_of(stage.text), keys, strict=True), 1)
    ]
    kind = "stage source" if source else "stage"
    return f'<div class="{kind}"><h3>{escape(stage.name)}</h3><pre>{"".join(lines)}</pre></div>'
