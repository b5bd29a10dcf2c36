"""Read a surface rule (SSA) as one expression over `i`, `j` and the metadata.

    %s = maskspec.lookup %start[%i]
    %p = arith.cmpi sle, %s, %j : index      ->      start[i] <= j
    maskspec.visible %p

Statics become their values; a look-up in a constant table becomes its value where the index is known, and a chain of
selects where it is not.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerAttr, i1
from xdsl.ir import Block, Operation, SSAValue

from cmir.analysis.linear import simplify
from cmir.dialects.expr import (
    OPERATORS,
    Expr,
    and_,
    boolean,
    const,
    eq,
    free_names,
    lookup,
    lt,
    make,
    map_bottom_up,
    not_,
    or_,
    select,
    show,
    substitute,
    var,
    walk,
)
from cmir.dialects.maskspec import (
    INDEX,
    ConstantsOp,
    ExistsOp,
    LookupOp,
    ModOp,
    PositionOp,
    RegionOp,
    SpecOp,
    position,
    spec_of,
)
from cmir.dialects.rule_ops import LENGTH_OF, OPERATOR_OF, PREDICATE, RuleOp, divisors_in, meaning, refusal
from cmir.dialects.spec_names import instead_of_square
from cmir.errors import SpecError

MAX_EXISTS = 4096  # values of an `exists`
MAX_SELECTS = 64  # entries of a constant table whose index is not known at compile time
_BOUND = "exists#"  # begins the names of what `exists` ops bind: no identifier, so no metadata has such a name


def statics_of(spec: SpecOp) -> dict[Expr, Expr]:
    """The substitution of each static by its value."""
    return {var(p.name): const(p.value) for p in spec.parameters if p.value is not None}


def constant_tables(spec: SpecOp) -> dict[str, tuple[int, tuple[int, ...]]]:
    """For each constant table its first index and its entries."""
    statics = statics_of(spec)
    return {name: _entries(op, statics) for name, op in spec.constant_tables().items()}


def _entries(op: ConstantsOp, statics: Mapping[Expr, Expr]) -> tuple[int, tuple[int, ...]]:
    if op.values is not None:
        return 0, _of_32_bits(op, 0, [v.data for v in op.values])
    assert op.bound is not None and op.lo is not None and op.hi is not None and op.entry is not None
    lo, hi = (number(substitute(e.data, statics), op, "an end of the range") for e in (op.lo, op.hi))
    if hi <= lo:
        raise SpecError(f"constant table @{op.sym_name.data} is empty: [{lo}, {hi})", op)
    if hi - lo > 1 << 16:
        raise SpecError(f"constant table @{op.sym_name.data} has {hi - lo} entries; at most {1 << 16}", op)
    bound = var(op.bound.data)
    entries = [number(substitute(op.entry.data, {**statics, bound: const(d)}), op, f"entry {d}") for d in range(lo, hi)]
    return lo, _of_32_bits(op, lo, entries)


def _of_32_bits(op: ConstantsOp, lo: int, entries: Sequence[int]) -> tuple[int, ...]:
    for d, value in enumerate(entries, lo):
        if not -(2**31) <= value < 2**31:
            raise SpecError(
                f"entry {d} of constant table @{op.sym_name.data} is {value}, which does not fit 32 bits", op
            )
    return tuple(entries)


def number(e: Expr, op: Operation, what: str) -> int:
    """The value of a static expression."""
    value = simplify(e)
    if value.op != "const":
        raise SpecError(f"{what} is not a number known at compile time: {value}", op)
    return value.value


def fold_constants(e: Expr, tables: Mapping[str, tuple[int, tuple[int, ...]]], op: Operation) -> Expr:
    """Replace look-ups in constant tables (the nearest entry where the index lies outside)."""

    def fold(term: Expr) -> Expr:
        if term.op != "lookup" or term.name not in tables:
            return term
        base, entries = tables[term.name]
        index = simplify(term.args[0])
        if index.op == "const":
            return const(entries[min(max(index.value - base, 0), len(entries) - 1)])
        if len(entries) > MAX_SELECTS:
            raise SpecError(
                f"@{term.name} has {len(entries)} entries and is indexed by {index}, which is not known at compile "
                f"time; at most {MAX_SELECTS} entries: pass it as a free table instead",
                op,
            )
        out = const(entries[-1])
        for k in range(len(entries) - 2, -1, -1):
            out = select(lt(index, const(base + k + 1)), const(entries[k]), out)
        return out

    return map_bottom_up(e, fold)


def rule_of(region: RegionOp) -> Expr:
    """The rule of a Region, surface or normal form, as one condition on `i`, `j` and metadata; statics are folded."""
    rule = or_(*(c.condition.data for c in region.clauses)) if region.is_normal else _SurfaceReader(region).read()
    return fold_statics(rule, spec_of(region), region)


def fold_statics(e: Expr, spec: SpecOp, op: Operation) -> Expr:
    """Substitute statics, expand `exists`, fold constant tables.

    Raises:
        SpecError: what has to be known at compile time is not, or a divisor is neither a positive number nor a scalar.
    """
    tables = constant_tables(spec)
    folded = fold_constants(_expand(substitute(e, statics_of(spec)), op), tables, op)
    folded = _clamp_numbers(folded, {p.name: p.entries for p in spec.parameters if p.entries is not None})
    for term in walk(folded):
        if term.op in ("floordiv", "mod"):
            _check_divisor(OPERATORS[term.op].symbol, simplify(term.args[1]), spec, op)
        if term.op == "isqrt" and simplify(term).op != "const":
            raise SpecError(f"'isqrt' is of a number known at compile time and not negative, got {term.args[0]}", op)
    return folded


def _check_divisor(name: str, divisor: Expr, spec: SpecOp, op: Operation) -> None:
    """A divisor is a positive constant or made of scalars and lengths; that those are positive, a fact has to say."""
    whole = {"rows", "cols", *(p.name for p in spec.parameters if p.kind == "scalar")}
    if spec.is_packed:  # checked before: its scalars are tables now
        return
    if not (divisor.value > 0 if divisor.op == "const" else free_names(divisor) <= whole):
        raise SpecError(
            f"'{name}' divides by a positive integer, the same for the whole sequence: known at compile time or a "
            f"scalar; got {divisor}",
            op,
        )


def divisions(region: RegionOp) -> Iterator[tuple[Operation, Expr]]:
    """The divisions of a surface rule: each op, and what it divides by."""
    reader = _SurfaceReader(region)
    reader.read()
    for op in region.walk():
        if isinstance(op, arith.FloorDivSIOp | ModOp):
            yield op, simplify(reader.values[op.operands[1]])
        elif isinstance(op, RuleOp):
            yield from ((op, simplify(divisor)) for _, divisor in divisors_in(reader.values[op.results[0]]))


def disjuncts_of(region: RegionOp) -> Iterator[tuple[Operation, Expr]]:
    """The operands of the outermost `or` of a rule, or its clauses: each op with its condition, statics not folded."""
    if region.is_normal:
        yield from ((c, c.condition.data) for c in region.clauses)
    else:
        yield from _operands_of(region, arith.OrIOp)


def conjuncts_of(region: RegionOp) -> Iterator[tuple[Operation, Expr]]:
    """The operands of the outermost `and` of a rule, or the literals of its only clause, as in `disjuncts_of`."""
    if region.is_normal:
        (clause,) = region.clauses
        yield from ((clause, literal) for literal in clause.literals)
    else:
        yield from _operands_of(region, arith.AndIOp)


def _operands_of(region: RegionOp, join: type[Operation]) -> Iterator[tuple[Operation, Expr]]:
    reader = _SurfaceReader(region)
    reader.read()
    end = region.body.block.last_op
    waiting = [] if end is None else [end.operands[0]]
    while waiting:
        value = waiting.pop()
        if isinstance(value.owner, join):
            waiting.extend(reversed(value.owner.operands))
        elif isinstance(value.owner, Operation):
            yield value.owner, reader.values[value]


def conditions_of(region: RegionOp) -> Iterator[tuple[Operation, Expr]]:
    """The comparisons and constants of a rule, surface or normal form: each op with its condition, statics not folded.

    A condition inside `exists` is that of some value that it tries.
    """
    if region.is_normal:
        yield from ((c, c.condition.data) for c in region.clauses)
        return
    reader = _SurfaceReader(region)
    reader.read()
    for op in region.walk():
        if not op.results or op.results[0] not in reader.values or op.results[0].type != i1:
            continue
        if not isinstance(op, arith.CmpiOp | arith.ConstantOp | arith.XOrIOp | RuleOp):
            continue  # made of other conditions, each with its own line
        condition, parent = reader.values[op.results[0]], op.parent_op()
        while parent is not None and parent is not region:
            if isinstance(parent, ExistsOp):
                bound = reader.values[parent.body.block.args[0]]
                condition = make("exists", parent.lo.data, parent.hi.data, condition, data=bound.name)
            parent = parent.parent_op()
        yield op, condition


def _clamp_numbers(e: Expr, entries: Mapping[str, int]) -> Expr:
    """`lo[i, -1]` is `lo[i, 0]`: where it is known which integer of an entry is read, one that exists is named."""

    def clamp(term: Expr) -> Expr:
        if term.op != "lookup" or term.name not in entries:
            return term
        index, number = term.args[0], simplify(term.args[1])
        if number.op == "const":
            number = const(min(max(number.value, 0), entries[term.name] - 1))
        return lookup(term.name, index, number)

    return map_bottom_up(e, clamp) if entries else e


def _expand(e: Expr, op: Operation) -> Expr:
    """`exists d in [a, b] : p(d)` is `p(a) or ... or p(b)`; the ends are static."""

    def expand(term: Expr) -> Expr:
        if term.op != "exists":
            return term
        lo, hi = (number(a, op, "an end of 'exists'") for a in term.args[:2])
        if hi - lo >= MAX_EXISTS:
            raise SpecError(f"'exists' tries {hi - lo + 1} values; at most {MAX_EXISTS} can be expanded", op)
        return or_(boolean(False), *(substitute(term.args[2], {var(term.name): const(d)}) for d in range(lo, hi + 1)))

    return map_bottom_up(e, expand)


class _SurfaceReader:
    """SSA to expression, one value at a time."""

    def __init__(self, region: RegionOp) -> None:
        self.region = region
        self.spec = spec_of(region)
        self.values: dict[SSAValue, Expr] = dict(zip(region.body.block.args, (var("i"), var("j")), strict=True))
        for p, arg in zip(self.spec.parameters, self.spec.body.block.args, strict=True):
            self.values[arg] = const(p.value) if p.value is not None else var(p.name)
        self.fresh = 0

    def read(self) -> Expr:
        return self._block(self.region.body.block)

    def _block(self, block: Block) -> Expr:
        for op in block.ops:
            if op.next_op is None:
                return self.values[op.operands[0]]
            self.values[op.results[0]] = self._op(op)
        raise SpecError("a rule must not be empty", self.region)

    def _op(self, op: Operation) -> Expr:
        args = [self.values[v] for v in op.operands if v in self.values]
        if type(op) in LENGTH_OF:
            return var(LENGTH_OF[type(op)])
        match op:
            case arith.ConstantOp(value=IntegerAttr() as attr) if attr.type in (i1, INDEX):
                if not -(2**31) <= attr.value.data < 2**31:
                    raise SpecError(f"the number {attr.value.data} does not fit 32 bits", op)
                return boolean(attr.value.data != 0) if attr.type == i1 else const(attr.value.data)
            case arith.CmpiOp() if (predicate := op.predicate.value.data) in PREDICATE:
                return self._compare(op, predicate, *args)
            case arith.XOrIOp() if op.result.type == i1:
                a, b = args
                return or_(and_(a, not_(b)), and_(not_(a), b))
            case PositionOp():
                return position(op.alignment.data, self.values[op.index])
            case LookupOp():
                name = op.constants.data if op.constants is not None else self.values[op.operands[0]].name
                return lookup(name, *(self.values[v] for v in op.indices))
            case ExistsOp():
                return self._exists(op)
            case arith.SelectOp() if op.result.type == i1:
                cond, a, b = args
                return or_(and_(cond, a), and_(not_(cond), b))
            case RuleOp():
                return self._foreign(op, [self.values[v] for v in op.operands])
            case _ if type(op) in OPERATOR_OF:
                return self._operator(op, OPERATOR_OF[type(op)], args)
            case _:
                raise SpecError(refusal(op), op)

    def _compare(self, op: Operation, predicate: int, a: Expr, b: Expr) -> Expr:
        if a.sort == "bool":
            both = or_(and_(a, b), and_(not_(a), not_(b)))
            if predicate not in (0, 1):
                raise SpecError("conditions are compared by eq or ne only", op)
            return both if predicate == 0 else not_(both)
        name, swap = PREDICATE[predicate]
        if name == "ne":
            return not_(eq(a, b))
        return make(name, b, a) if swap else make(name, a, b)

    def _operator(self, op: Operation, name: str, args: list[Expr]) -> Expr:
        want, noun = (i1, "conditions (i1)") if name in ("and", "or") else (INDEX, "integers (index)")
        if op.results[0].type != want:
            raise SpecError(f"'{op.name}' works on {noun} in a rule, got {op.results[0].type}", op)
        if name in ("floordiv", "mod"):
            _check_divisor(op.name, simplify(args[1]), self.spec, op)
        if name == "mul":
            self._check_product(op, *args)
        return and_(*args) if name == "and" else or_(*args) if name == "or" else make(name, *args)

    def _foreign(self, op: RuleOp, args: list[Expr]) -> Expr:
        e = meaning(op, args)
        for name, divisor in divisors_in(e):
            _check_divisor(f"{op.name}, {OPERATORS[name].symbol}", simplify(divisor), self.spec, op)
        for term in walk(e):
            if term.op == "mul":
                self._check_product(op, *term.args)
        return e

    def _check_product(self, op: Operation, a: Expr, b: Expr) -> None:
        if all(simplify(factor).op != "const" and _varies(factor, self.spec) for factor in (a, b)):
            got = show(make("mul", a, b)) + instead_of_square(a, b)
            raise SpecError(f"'{op.name}' multiplies by an integer known at compile time, got {got}", op)

    def _exists(self, op: ExistsOp) -> Expr:
        self.fresh += 1
        bound = f"{_BOUND}{self.fresh}"
        self.values[op.body.block.args[0]] = var(bound)
        return make("exists", op.lo.data, op.hi.data, self._block(op.body.block), data=bound)


def _varies(e: Expr, spec: SpecOp) -> bool:
    """Whether a factor is unknown at compile time once `exists` is expanded and constant tables are folded."""
    constants = spec.constant_tables()
    return any(not name.startswith(_BOUND) and name not in constants for name in free_names(e))
