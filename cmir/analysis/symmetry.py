"""Is a rule symmetric: does row i see column j iff row j sees column i?

    visible(i, j)  =  any(guard(i) and clause(i, j))
    symmetric      iff  where rows == cols, guard(j) and clause(j, i) implies visible(i, j), for every clause

Swapping twice changes nothing, so one direction is enough. Whether there are as many rows as columns is known when a
batch is described. Most clauses are some clause's mirror image as they stand (of
a circle, that of row offset d is that of -d): they are compared as sets of inequalities. The rest is a question for
`Entailment`, in which the column is one more scalar, with its range as facts.
"""

from __future__ import annotations

from dataclasses import replace

from cmir.analysis.entailment import Entailment, implies
from cmir.analysis.facts import Fact, Facts, conjuncts, facts_of, in_range
from cmir.analysis.linear import inequalities, simplify
from cmir.dialects.expr import COLS, ROWS, ZERO, Expr, I, J, and_, eq, or_, substitute, var
from cmir.dialects.maskspec import Parameter, SpecOp

MOST_CLAUSES = 200
"""Of a rule with more nothing is asked."""


def is_symmetric(spec: SpecOp) -> bool:
    """Whether the rule of a spec in normal form is proved to be symmetric, where there are as many rows as columns."""
    facts = facts_of(spec)
    clauses = [
        and_(in_range(I, region.lo.data, region.hi.data), clause.condition.data)
        for region in spec.regions_of_rows
        for clause in region.clauses
    ]
    if not clauses or len(clauses) > MOST_CLAUSES:
        return False
    other = _column(facts)
    rule = [simplify(substitute(clause, {J: other, COLS: ROWS})) for clause in clauses]
    mirrored = [simplify(substitute(clause, {I: other, J: I, COLS: ROWS})) for clause in clauses]
    forms = {_forms(clause, other) for clause in rule} - {None}
    asked = Entailment(_with_column(facts, other), "i", ZERO, ROWS)
    return all(_forms(clause, other) in forms or asked.prove(implies(clause, or_(*rule))).proved for clause in mirrored)


def _column(facts: Facts) -> Expr:
    """The column as a scalar, under a name that no metadatum has."""
    name = "column"
    while name in {p.name for p in facts.parameters}:
        name += "_"
    return var(name)


def _with_column(facts: Facts, other: Expr) -> Facts:
    """The facts, that there are as many rows as columns, and that the column is one of them."""
    more = [eq(ROWS, COLS), *conjuncts(in_range(other, ZERO, ROWS))]
    return replace(
        facts,
        parameters=(*facts.parameters, Parameter(other.name, "scalar")),
        facts=(*facts.facts, *(Fact(condition, None, str(condition), "scalar") for condition in more)),
    )


Forms = frozenset[tuple[frozenset[tuple[Expr, int]], int]]


def _forms(clause: Expr, other: Expr) -> Forms | None:
    """The inequalities that a clause is the conjunction of, but for the ranges of row and column; None if there is more
    to it than inequalities."""
    parts = conjuncts(clause)
    if any(part.op not in ("lt", "le", "eq") for part in parts):
        return None
    ranges = [*conjuncts(in_range(I, ZERO, ROWS)), *conjuncts(in_range(other, ZERO, ROWS))]
    said, known = ({(frozenset(f.terms), f.constant) for f in inequalities(x)} for x in (parts, ranges))
    return frozenset(said - known)
