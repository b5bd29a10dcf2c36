"""Which lines of a spec a clause is made of, and which lines of every later stage come from it.

A clause of the normal form is named `region.number`, and later stages carry that name: spans and endpoints in their
`from`, generated source in its comments. What is left is the way back to the text that a user wrote. Normal form takes
a rule apart into literals; an op of the rule belongs to a clause if taking the op's own condition apart, or its
negation, gives one of the clause's literals:

    %causal = arith.cmpi sle, %j, %i : index      ->   j <= i, i < j      ->   history.0, candidate.1
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from cmir.analysis.dnf import TooManyClauses, clauses_of
from cmir.analysis.rules import conditions_of, fold_statics
from cmir.dialects.expr import Expr, not_
from cmir.dialects.maskspec import RegionOp, SpecOp, spec_of
from cmir.errors import SourceLocation, SpecError, locate

CAP = 256
"""Clauses of one op's condition; one that has more is taken to be of no clause in particular."""


def clause_lines(surface: SpecOp, spec: SpecOp) -> dict[str, tuple[int, ...]]:
    """For every clause of `spec` (in normal form) the lines of the file of `surface` that it comes from, ascending."""
    home = locate(surface)
    places = clause_places(surface, spec)
    return {
        clause: tuple(sorted({place.line for place in found if home is None or place.file == home.file}))
        for clause, found in places.items()
    }


def clause_places(surface: SpecOp, spec: SpecOp) -> dict[str, tuple[SourceLocation, ...]]:
    """For every clause of `spec` (in normal form) the places in `surface` that it comes from, ascending.

    A rule in Python may be of several files: a mask_mod is written in one and imported in another. Where no single op
    gives a literal of a clause (a rule in another order of tokens, a rule that is always true), these are the places of
    its Region. Regions of a `spec` that comes from the cache have no location in `surface`, but names.
    """
    named = {r.sym_name.data: r for r in surface.regions_of_rows}
    written = {at: r for r in surface.regions_of_rows if (at := locate(r)) is not None}
    literals = {id(r): list(_literals(r)) for r in surface.regions_of_rows}
    out: dict[str, tuple[SourceLocation, ...]] = {}
    for region in spec.regions_of_rows:
        source, place = named.get(region.sym_name.data), locate(region)
        if place is not None and (source is None or locate(source) != place):  # Regions may share a place
            source = written.get(place, source)
        for k, clause in enumerate(region.clauses):
            places: set[SourceLocation] = set()
            if source is not None:
                mine = set(clause.literals)
                places = {at for at, some in literals[id(source)] if mine & some} or {*_body_places(source)}
            out[f"{region.sym_name.data}.{k}"] = tuple(sorted(places))
    return out


def region_lines(surface: SpecOp) -> dict[str, int]:
    """The line on which each Region of a spec begins, of those in the file of the spec."""
    home = locate(surface)
    places = {r.sym_name.data: locate(r) for r in surface.regions_of_rows}
    return {
        name: place.line
        for name, place in places.items()
        if place is not None and (home is None or place.file == home.file)
    }


def _literals(region: RegionOp) -> Iterator[tuple[SourceLocation, set[Expr]]]:
    """The place of every condition of a rule as it was written, with the literals it can give."""
    spec = spec_of(region)
    for op, condition in conditions_of(region):
        place = locate(op)
        if place is None:
            continue
        found = set[Expr]()
        try:
            folded = fold_statics(condition, spec, op)
            for e in (folded, not_(folded)):
                found |= {literal for clause in clauses_of(e, CAP) for literal in clause}
        except (TooManyClauses, SpecError):
            continue
        yield place, found


def _body_places(region: RegionOp) -> Iterator[SourceLocation]:
    places: Iterator[SourceLocation | None] = (locate(op) for op in region.walk())
    return (place for place in places if place is not None)


_CLAUSE = re.compile(r'"([A-Za-z]\w*\.\d+)"')
_COMMENT = re.compile(r"\bregion (\w+) clause (\d+)")
_REGION = re.compile(r"\s*(?:maskspec|interval)\.region @(\w+)")


def lines_of(text: str) -> list[str]:
    """The lines of a text as places count them: by line feeds alone."""
    return text.removesuffix("\n").split("\n")


def keys_of_lines(text: str) -> list[tuple[str, ...]]:
    """For every line of a stage (IR or source) the clauses it comes from; a Region's own line has its name."""
    out: list[tuple[str, ...]] = []
    region, number = "", 0
    carried: tuple[str, ...] = ()  # a comment of generated source speaks of the line after it
    for line in lines_of(text):
        keys = tuple(dict.fromkeys(_CLAUSE.findall(line)))
        comment = tuple(f"{name}.{k}" for name, k in _COMMENT.findall(line)) if "#" in line else ()
        if (found := _REGION.match(line)) is not None:
            region, number = found[1], 0
            keys = (region,)
        elif line.lstrip().startswith("maskspec.clause"):
            keys, number = (f"{region}.{number}",), number + 1
        out.append(keys or comment or carried)
        carried = comment
    return out


def keys_of_source(text: str, surface: SpecOp, clauses: Mapping[str, tuple[int, ...]]) -> list[tuple[str, ...]]:
    """For every line of the text of a spec the clauses that come from it."""
    out: list[list[str]] = [[] for _ in lines_of(text)]
    for name, line in region_lines(surface).items():
        if line <= len(out):
            out[line - 1].append(name)
    for clause, lines in clauses.items():
        for line in lines:
            if line <= len(out):
                out[line - 1].append(clause)
    return [tuple(keys) for keys in out]
