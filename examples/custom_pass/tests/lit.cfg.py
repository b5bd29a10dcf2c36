"""Configuration of lit: `lit -v examples/custom_pass/tests` runs the RUN lines of every .mlir file here."""
# ruff: noqa: F821
# pyright: reportUndefinedVariable=false

import os

from cmir.testing import InProcess

config.name = "custom_pass"
config.suffixes = [".mlir"]
config.test_source_root = os.path.dirname(__file__)
config.test_exec_root = os.path.join(config.test_source_root, "Output")
config.test_format = InProcess()
