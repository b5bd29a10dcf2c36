"""The tables of names agree with the classes they name."""

from importlib import import_module

import pytest
from xdsl.ir import Dialect
from xdsl.passes import ModulePass
from xdsl.universe import Universe
from xdsl.utils.target import Target

import cmir
from cmir.universe import CMIR, PASSES, PassEntry


@pytest.mark.parametrize("entry", PASSES, ids=lambda entry: entry.name)
def test_pass(entry: PassEntry):
    cls = getattr(import_module(entry.module), entry.class_name)
    assert issubclass(cls, ModulePass)
    assert cls.name == entry.name
    assert cls.__doc__ is not None
    assert cls.__doc__.strip().partition("\n")[0] == entry.help


@pytest.mark.parametrize("name", CMIR.all_dialects)
def test_dialect(name: str):
    dialect = CMIR.all_dialects[name]()
    assert isinstance(dialect, Dialect)
    assert dialect.name == name


@pytest.mark.parametrize("name", CMIR.all_targets)
def test_target(name: str):
    target = CMIR.all_targets[name]()
    assert issubclass(target, Target)
    assert target.name == name


def test_xdsl_opt_knows_us():
    universe = Universe.get_multiverse()
    assert CMIR.all_passes.keys() <= universe.all_passes.keys()
    assert CMIR.all_dialects.keys() <= universe.all_dialects.keys()


@pytest.mark.parametrize("name", cmir.__all__)
def test_public_name(name: str):
    assert getattr(cmir, name) is not None
