"""What the author of a pass tests it with: a `lit` format for its text, and the oracle for its meaning.

    InProcess     runs RUN lines without starting a process: `config.test_format = InProcess()` in lit.cfg.py
    check_pass    runs passes over a spec, and compares the masks before and after on drawn metadata

Imported when first used: `InProcess` needs lit and filecheck (`pip install 'cmir[dev]'`), `check_pass` nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cmir.testing.lit_format import Command, InProcess, RunLineError, parse_run_line, run_lines
    from cmir.testing.oracle import check_pass

__all__ = ["Command", "InProcess", "RunLineError", "check_pass", "parse_run_line", "run_lines"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'cmir.testing' has no attribute '{name}'")
    return getattr(import_module("cmir.testing.oracle" if name == "check_pass" else "cmir.testing.lit_format"), name)
