"""Configuration of lit: `lit tests/lit` runs the files in process, `lit -Dshell=1 tests/lit` in a shell."""
# ruff: noqa: F821
# pyright: reportUndefinedVariable=false

import os

import lit.formats

from cmir.testing import InProcess

config.name = "cmir"
config.suffixes = [".mlir"]
config.excludes = ["inputs"]
config.test_source_root = os.path.dirname(__file__)
config.test_exec_root = os.path.join(config.test_source_root, "Output")
config.test_format = lit.formats.ShTest() if lit_config.params.get("shell") else InProcess()
config.environment["PATH"] = os.environ["PATH"]
