"""`from_mask_mod`: a FlexAttention predicate as a MaskSpec.

    def document_causal(b, h, q_idx, kv_idx):
        return (doc[q_idx] == doc[kv_idx]) & (kv_idx <= q_idx)

    spec = cmir.from_mask_mod(document_causal, nondecreasing=["doc"])
    mask = cmir.compile(spec)
    desc = mask.describe(rows=n, **spec.captured)         # or with other documents: doc=...

The predicate is traced once, on scalars, into a graph of torch's own operators; each becomes the term it computes.
Tensors that the predicate captures become metadata under the names by which it knows them: a 0-d tensor a scalar, a
tensor indexed by a position a free table, with leading indices `b` and `h` as its batch; a last index that is a number
reads one integer of an entry. Python numbers that it captures are constants of the compiled mask, as they are in
torch.compile; a number that it reads out of a tensor would be one unasked, and is refused. Where the predicate
compares the row with a number, `cmir.frontend.regions` cuts it into Regions.

No fact is assumed that nobody declared. Without facts a mask may need packed bits where intervals would do: `hints`
says which facts hold for the captured data and are worth declaring. What is declared is checked with every batch.
"""

from __future__ import annotations

import inspect
import linecache
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from types import ModuleType
from typing import TYPE_CHECKING, Any, cast

from cmir.dialects.expr import KEYWORDS, Expr, free_names, walk
from cmir.errors import MetadataError, SourceLocation, SpecError, missing_torch, render
from cmir.frontend.aten import INTEGERS_ONLY, OnTerms, Value, is_condition
from cmir.frontend.regions import cut
from cmir.frontend.source import too_deep, written_at
from cmir.frontend.spec import MaskSpec
from cmir.frontend.tables import Table
from cmir.frontend.terms import Term
from cmir.frontend.trace import ARGUMENTS, Shape, line_of, traced
from cmir.signature import DESCRIBE_ARGUMENTS
from cmir.sizes import Size

if TYPE_CHECKING:
    import torch

    MaskMod = Callable[[Any, Any, Any, Any], Any]

CANNOT = "the mask_mod cannot be imported"

_TENSOR_DEPTH = 4
"""How far captured objects are searched for the name of a tensor: functions in tuples in functions, and so on."""


_CONVERSIONS = {
    "torch.float32": ".float()",
    "torch.float64": ".double()",
    "torch.float16": ".half()",
    "torch.bfloat16": ".bfloat16()",
}
"""Methods of a tensor by what they convert to."""

_COMPARISONS = {"eq", "ne", "lt", "le", "gt", "ge"}


class MaskModSpec(MaskSpec):
    """A MaskSpec that `from_mask_mod` made. More facts may be added with `assume`, on the terms in `metadata`."""

    captured: dict[str, Any]
    """The captured tensors, as `describe` takes them: integers, leading dimensions for sequences and heads. Where a
    table may be read at a negative index, its length too: `table_size`; and the lengths that are `fixed`."""
    sizes: dict[str, Size]
    """Which of them are lengths of others: `describe` and its like take those from the tensors they are given."""
    sources: dict[str, torch.Tensor]
    """The tensors themselves, by the same names, as the predicate captured them."""
    metadata: dict[str, Term | Table]
    of_heads: set[str]
    """Names of those that `h` indexes first: `describe` takes them as one of a batch of 1."""
    looked: bool
    """Whether the predicate, or the import, looked at more of a captured tensor than its dtype, device and number of
    dimensions: at its shape or its values. With other tensors the same function may then say another rule."""
    fixed: list[str]
    """Lengths of captured tensors that the predicate asked for, as in `t.shape`, and where: they are numbers of the
    mask, and facts, `t_size == 24`, by which it refuses tensors of another length. Import the predicate anew for those.
    """
    hints: list[str]
    """Facts that hold for the captured data, are not declared, and may spare the mask its packed bits."""


def _require_four(mask_mod: MaskMod) -> None:
    """Raises TypeError for a function that four arguments cannot be given to."""
    try:
        takes = inspect.signature(mask_mod)
    except (TypeError, ValueError):  # nothing says what it takes
        return
    try:
        takes.bind(*ARGUMENTS)
    except TypeError:
        name = getattr(mask_mod, "__name__", type(mask_mod).__name__)
        raise TypeError(f"mask_mod: expected a function of ({', '.join(ARGUMENTS)}), got {name}{takes}") from None


def from_mask_mod(mask_mod: MaskMod, *, name: str | None = None, nondecreasing: Iterable[str] = ()) -> MaskModSpec:
    """The mask that a FlexAttention predicate says, for any number of rows and columns.

    Args:
        mask_mod: a function (b, h, q_idx, kv_idx) of 0-d integer tensors to a 0-d bool tensor, as create_block_mask
            takes it; also the result of and_masks and or_masks, partials, lambdas and callable objects.
        name: of the spec; by default the function's name.
        nondecreasing: names of captured tables whose entries never fall: document ids, segment starts.

    Raises:
        SpecError: the predicate reads a value, of an index or of a captured tensor (`if`, `.item()`, `int(t[0])`), at
            the line that does; or it does what the rule language does not have, at that line; or it returns no
            condition, at its definition.
        TypeError: mask_mod cannot be called so.
    """
    if not callable(mask_mod):
        raise TypeError(f"mask_mod: expected a function of (b, h, q_idx, kv_idx), got {type(mask_mod).__name__}")
    _require_four(mask_mod)
    if isinstance(nondecreasing, str):
        raise TypeError(f"nondecreasing: expected a list of names, got {nondecreasing!r}; write [{nondecreasing!r}]")
    try:
        names = _tensors_of(mask_mod)
    except ModuleNotFoundError as error:
        raise missing_torch(error, "from_mask_mod") from error
    where = _definition(mask_mod)
    trace = traced(mask_mod, names, where)
    lines = {line.file for node in trace.graph.nodes if (line := line_of(node)) is not None}
    home = where if where is not None and where.file in lines else None  # and_masks(..) is defined in torch
    with written_at(home):
        spec = MaskModSpec(name or _identifier(_function_name(mask_mod)))
    importer = _Importer(spec, names, where)
    try:
        regions = cut(importer.run(trace.graph))
    except RecursionError as error:
        raise SpecError(f"{CANNOT}: {too_deep(error)}", where) from None
    known = importer.tables
    for table in nondecreasing:
        if table not in known:
            has = ", ".join(sorted(known)) or "none"
            raise SpecError(f"mask_mod captures no table '{table}' to be nondecreasing; its tables: {has}", where)
        spec.assume(known[table].nondecreasing())
    for number, region in enumerate(regions):
        lo, hi = 0 if region.lo is None else region.lo, spec.rows if region.hi is None else region.hi
        with written_at(home):
            spec.region(f"rows_{number}" if len(regions) > 1 else "all", lo, hi, visible=region.rule)
    spec.fixed, spec.sizes = importer.fix(trace.shapes), importer.sizes
    spec.captured, spec.metadata, spec.sources = importer.captured, importer.metadata, importer.sources
    spec.of_heads, spec.looked = importer.of_heads, trace.looked or importer.looked
    spec.hints = [
        f"'{table}' never falls in the captured data: if that holds for all data, say nondecreasing=['{table}'] for "
        "intervals in place of packed bits"
        for table in known
        if table not in set(nondecreasing)
        and _never_falls(known[table], importer.captured[table])
        and not (_is_boolean(importer.sources[table]) and importer.sources[table].all())  # no padding says nothing
    ]
    spec.hints += [
        f"'{table}' is read at an index that nothing says is at least 0, and so may count from its end: if none is "
        "below, say so of what it is made of, as in spec.assume(spec.metadata['ids'][spec.i] >= 0)"
        for table in known
        if table in importer.from_end
    ]
    return spec


class _Partial:
    """A captured tensor, and the indices it has been given so far."""

    def __init__(self, tensor: torch.Tensor, indices: tuple[object, ...] = ()) -> None:
        self.tensor = tensor
        self.indices = indices


class _Importer:
    """Runs a traced graph on terms; captured tensors become metadata of the spec as they are met."""

    def __init__(self, spec: MaskModSpec, names: Mapping[int, str], where: SourceLocation | None) -> None:
        self.spec = spec
        self.on_terms = OnTerms(spec)
        self.names = names
        self.where = where
        self.captured: dict[str, Any] = {}
        self.sources: dict[str, torch.Tensor] = {}
        self.metadata: dict[str, Term | Table] = {}
        self.of_heads: set[str] = set()
        self.looked = False
        self._declared: dict[tuple[int, str, bool], str] = {}
        self._leads: dict[str, str] = {}
        self._booleans: set[Expr] = set()
        self.sizes: dict[str, Size] = {}
        self.from_end: set[str] = set()

    @property
    def tables(self) -> dict[str, Table]:
        return {name: table for name, table in self.metadata.items() if isinstance(table, Table)}

    def run(self, graph: Any) -> Term | bool:
        """What the graph returns, as a condition."""
        values: dict[Any, object] = {}
        arguments = iter(("b", "h", self.spec.i, self.spec.j))

        def value(x: Any) -> Any:
            if isinstance(x, list | tuple):
                return [value(element) for element in cast("Sequence[Any]", x)]
            return values[x] if hasattr(x, "op") else x

        line = self.where
        try:
            for node in graph.nodes:
                line = line_of(node) or self.where
                if node.op == "placeholder":
                    values[node] = next(arguments)
                elif node.op == "get_attr":
                    values[node] = _Partial(getattr(graph.owning_module, node.target))
                elif node.op == "call_function":
                    with written_at(line):
                        values[node] = self._call(node, value(node.args))
                else:
                    return self._result(node.args[0], value)
        except (SpecError, TypeError) as error:
            message = error.message if isinstance(error, SpecError) else str(error)
            raise SpecError(f"{CANNOT}: {message}", line) from None
        raise AssertionError("a graph ends with its output")

    def _result(self, returned: Any, value: Callable[[Any], Any]) -> Term | bool:
        form = _form(returned) if hasattr(returned, "op") else None
        if not isinstance(returned, bool) and (form is None or form.shape):
            raise SpecError("a mask_mod returns one 0-d bool tensor; look for a stray comma, or no return")
        result = self._term(value(returned))
        if not is_condition(result):
            raise SpecError("it returns an integer; a mask_mod returns a condition: visible or not")
        constants = (e.value for e in walk(result.expr) if e.op == "const") if isinstance(result, Term) else ()
        if (wide := next((c for c in constants if not -(2**31) <= c < 2**31), None)) is not None:
            raise SpecError(
                f"it uses the number {wide}, and numbers of a rule have 32 bits; capture it as a scalar, "
                f"limit = torch.tensor({wide}), made outside"
            )
        return result

    def _call(self, node: Any, arguments: list[Any]) -> object:
        name = str(node.target).split(".")[1]
        if name in ("lift_fresh_copy", "lift_fresh") and isinstance(arguments[0], _Partial):
            if arguments[0].tensor.dim() == 0:  # torch.tensor(3), made inside the predicate
                return arguments[0].tensor.item()
            raise SpecError("it makes a tensor of its own; make it outside, to be captured")
        if name == "index":
            return self._index(*arguments)
        operator = self.on_terms.operator(name)
        self._refuse_rewritten(node)
        if name.startswith("new_") or name.endswith("_like"):
            arguments[0] = 0  # lends its dtype and device alone, and may be b or h
        options = {key: value for key, value in node.kwargs.items() if key in ("alpha", "rounding_mode")}
        return self._of_dtype(node, operator(*map(self._term, arguments), **options))

    def _refuse_rewritten(self, node: Any) -> None:
        """Raises for a call that changes a tensor in place, which others may share, or reads its bits as another dtype,
        and for a comparison in a dtype too narrow for what is compared, where torch wraps it."""
        import torch

        if "out" in node.kwargs:  # terms have no memory
            raise SpecError("out= writes into a tensor; use what the function returns")
        if str(node.target) == "aten.view.dtype":
            raise SpecError(f"it reads the bits of a number as {node.args[1]}; write .to({node.args[1]})")
        name = str(node.target).split(".")[1]
        if name == "_to_copy" and _form(node).dtype == torch.int32:
            given = _form(node.args[0]).dtype
            if given in (torch.uint32, torch.uint64):
                raise SpecError(f"it makes an int32 of {given}, which wraps; write .long() in place of .int()")
        if name not in _COMPARISONS:
            return
        operands = [_form(x) if hasattr(x, "op") else x for x in node.args]
        like: list[Any] = [
            x if isinstance(x, int | float) else torch.empty(x.shape, dtype=x.dtype, device="meta") for x in operands
        ]
        dtype = torch.result_type(like[0], like[1])
        if dtype == torch.bool or dtype.is_floating_point or dtype.is_complex:
            return
        limits = torch.iinfo(dtype)
        for x in like:
            if isinstance(x, torch.Tensor):
                ends = (0, 1) if x.dtype == torch.bool else (torch.iinfo(x.dtype).min, torch.iinfo(x.dtype).max)
            else:
                ends = (0, 0) if dtype in (torch.int32, torch.int64) else (x, x)  # of more than 32 bits: `_result`
            if not limits.min <= ends[0] <= ends[1] <= limits.max:
                what = f"a {x.dtype}" if isinstance(x, torch.Tensor) else x
                raise SpecError(f"it compares in {dtype}, in which {what} wraps; write .long() on what it reads")

    def _of_dtype(self, node: Any, value: Value) -> Value:
        """The value as what torch has there: a condition or an integer."""
        import torch

        dtype = getattr(_form(node), "dtype", None)
        if dtype is None:
            return value
        if dtype.is_floating_point or dtype.is_complex:
            if str(node.target).split(".")[1] == "_to_copy":
                method = f"{_CONVERSIONS[str(dtype)]} or " if str(dtype) in _CONVERSIONS else ""
                raise SpecError(f"a mask is integer arithmetic: drop {method}.to({dtype})")
            raise SpecError(f"{INTEGERS_ONLY}; it computes in {dtype}")
        if dtype not in (torch.bool, torch.int32, torch.int64):
            raise SpecError(f"it computes in {dtype}, which wraps; write .long() on what it reads")
        return self.on_terms.condition(value) if dtype == torch.bool else self.on_terms.integer(value)

    def _index(self, tensor: object, indices: Sequence[object]) -> Term | _Partial:
        if not isinstance(tensor, _Partial):
            raise SpecError("only a captured tensor is indexed")
        given = (*tensor.indices, *indices)
        return _Partial(tensor.tensor, given) if len(given) < tensor.tensor.dim() else self._entry(tensor.tensor, given)

    def _entry(self, tensor: torch.Tensor, indices: tuple[object, ...]) -> Term:
        """Metadata for the tensor, read at the indices: any of b, h, then at most one position."""
        lead = "".join(index for index in indices if isinstance(index, str))
        positions = [index for index in indices if not isinstance(index, str)]
        if lead not in ("", "b", "h", "bh") or any(isinstance(x, str) for x in indices[len(lead) :]):
            raise SpecError("a captured tensor is indexed by b, then h, then a position, in this order")
        number = positions.pop() if len(positions) == 2 else None
        if positions[1:] or not (number is None or type(number) is int):
            raise SpecError(
                "a captured tensor is read at two positions; a matrix is no metadatum: write the rule that makes it "
                "(of ancestors a loop over a table of parents, at = parent[at])"
            )
        entries = None
        if type(number) is int:
            entries, self.looked = tensor.shape[-1], True
        name = self._declare(tensor, lead, bool(positions), entries)
        metadatum = self.metadata[name]
        if isinstance(metadatum, Term):
            read = metadatum
        elif type(number) is int:
            entry = number + metadatum.entries if number < 0 and metadatum.entries else number
            read = metadatum[self._place(name, positions[0]), entry]
        else:
            read = metadatum[self._place(name, positions[0])]
        return self._truth(read) if _is_boolean(tensor) else read

    def _truth(self, read: Term) -> Term:
        """What is read of booleans, as a condition: that it is 0 or 1 is a fact, where one can say so."""
        if {"i", "j"} <= free_names(read.expr):  # a fact speaks of rows or of columns
            return read != 0
        if read.expr not in self._booleans:
            self._booleans.add(read.expr)
            self.spec.assume((read >= 0) & (read <= 1))
        return read > 0

    def _place(self, table: str, position: object) -> Term | int:
        """An index as torch has it: one below 0 counts from the end, whose place is one more metadatum."""
        index = self.on_terms.integer(self._term(position))
        if not isinstance(index, Term):
            if index < 0:
                raise SpecError(f"it reads '{table}' at {index}, from its end; write the place from its start")
            return index
        if _at_least_zero(index.expr):
            return index
        self.looked = True
        self.from_end.add(table)
        return self.spec.where(index < 0, index + self._length(table, len(self._leads[table])), index)

    def _length(self, name: str, dimension: int) -> Term:
        """The length of a captured tensor along one dimension, as a metadatum."""
        lead = self._leads[name]
        along: Any = {"b": "batch", "h": "heads"}[lead[dimension]] if dimension < len(lead) else "size"
        size = f"{name}_{along}"
        if size not in self.metadata:
            self.metadata[size] = self.spec.scalar(size)
            self.captured[size] = self.sources[name].shape[dimension]
            self.sizes[size] = Size(name, along, self.sources[name].dim() - len(lead))
        return cast("Term", self.metadata[size])

    def fix(self, shapes: Iterable[Shape]) -> list[str]:
        """Facts that what was asked for of the shapes of metadata stays as it was; and what to say of each."""
        places = {(id(shape.tensor), shape.dimension): shape.location for shape in reversed(list(shapes))}
        said: list[str] = []
        for name, tensor in list(self.sources.items()):
            for dimension in range(len(self._leads[name]) + (name in self.tables)):  # an entry's length is a type
                if (key := (id(tensor), dimension)) not in places:
                    continue
                size, length = self._length(name, dimension), tensor.shape[dimension]
                self.spec.assume(size == length)
                what = f"the mask_mod asks for the shape of '{name}'; the mask keeps it: {size} == {length}"
                said.append(render("note", what, places[key]))
        return said

    def _declare(self, tensor: torch.Tensor, lead: str, table: bool, entries: int | None) -> str:
        key = (id(tensor), lead, table)
        if key in self._declared:
            return self._declared[key]
        if tensor.dtype.is_floating_point or tensor.dtype.is_complex:
            raise SpecError(f"metadata are integers or booleans; it captures a tensor of {tensor.dtype}")
        base = _identifier(self.names.get(id(tensor), "captured"))
        name, count = base, 1
        while name in self.metadata:
            count += 1
            name = f"{base}_{count}"
        self.metadata[name] = self.spec.table(name, per="free", entries=entries) if table else self.spec.scalar(name)
        self.sources[name], self._leads[name] = tensor, lead
        if lead == "h":
            self.of_heads.add(name)
        try:
            self.captured[name] = as_metadatum(tensor, of_heads=lead == "h")
        except MetadataError as error:
            raise SpecError(f"captured tensor '{base}': {error}") from None
        self._declared[key] = name
        return name

    def _term(self, value: object) -> Any:
        """An argument of an operator. A captured 0-d tensor is a scalar."""
        if isinstance(value, _Partial):
            if value.tensor.dim():
                shape = tuple(value.tensor.shape)
                raise SpecError(
                    f"a captured tensor of shape {shape} is used without an index for each dimension; read its entries "
                    "one by one, (t[q, 0] == x) | (t[q, 1] == x) for any"
                )
            return self._entry(value.tensor, ())
        if isinstance(value, str):
            raise SpecError(
                f"'{value}' may only index captured tensors: make what depends on it one, and index it by '{value}'"
            )
        if isinstance(value, float):
            raise SpecError(f"{INTEGERS_ONLY}; it uses {value}")
        return value


def as_metadatum(tensor: torch.Tensor, *, of_heads: bool = False) -> torch.Tensor:
    """A captured tensor as `describe` takes it: integers; a tensor of heads alone is one of a batch of 1.

    Raises:
        MetadataError: a uint64 is more than an int64 holds. Only of uint64 are values looked at.
    """
    import torch

    wide = tensor
    if tensor.dtype in (torch.uint32, torch.uint64):
        wide = tensor.to(torch.int64)
        if tensor.dtype == torch.uint64 and bool((wide < 0).any()):
            raise MetadataError("expected integers below 2**63, got a torch.uint64 with larger ones")
    elif tensor.dtype not in (torch.int32, torch.int64):
        wide = tensor.to(torch.int32)
    return wide[None] if of_heads else wide


def _form(node: Any) -> Any:
    """What torch has at a node: its dtype and shape."""
    return node.meta.get("val", node.meta.get("tensor_meta"))


def _at_least_zero(e: Expr) -> bool:
    """Whether an index is a position, or made of positions and numbers by what leaves it at least 0."""
    match e.op:
        case "const":
            return e.value >= 0
        case "var":
            return e.name in ("i", "j", "rows", "cols")
        case "mod" | "abs":
            return True
        case "max":
            return any(map(_at_least_zero, e.args))
        case "add" | "mul" | "min" | "floordiv":
            return all(map(_at_least_zero, e.args))
        case "select":
            return all(map(_at_least_zero, e.args[1:]))
        case _:
            return False


def _tensors_of(function: object) -> dict[int, str]:
    """Names of the tensors that a function can reach, by identity: of closures, globals, defaults and attributes."""
    import torch

    names: dict[int, str] = {}
    seen: set[int] = set()

    def visit(name: str, value: object, depth: int) -> None:
        if isinstance(value, torch.Tensor):
            names.setdefault(id(value), name)
        if (
            isinstance(value, torch.Tensor | str | int | float | type | ModuleType)
            or depth > _TENSOR_DEPTH
            or id(value) in seen
        ):
            return
        seen.add(id(value))
        for inner, thing in _reachable(name, value):
            visit(inner, thing, depth + 1)

    visit(_function_name(function), function, 0)
    return names


def _reachable(name: str, value: object) -> list[tuple[str, object]]:
    if isinstance(value, partial):
        applied = cast("partial[Any]", value)
        return [("", applied.func), *((name, x) for x in applied.args), *applied.keywords.items()]
    if inspect.ismethod(value):
        return [("", value.__self__), ("", value.__func__)]
    if inspect.isfunction(value):
        captured = inspect.getclosurevars(value)
        defaults = [p for p in inspect.signature(value).parameters.values() if p.default is not p.empty]
        return [*captured.nonlocals.items(), *captured.globals.items(), *((p.name, p.default) for p in defaults)]
    if isinstance(value, Mapping):
        return [(str(key), x) for key, x in cast("Mapping[object, object]", value).items()]
    if isinstance(value, list | tuple):
        return [(name, x) for x in cast("Sequence[object]", value)]
    inner: list[tuple[str, object]] = [*getattr(value, "__dict__", {}).items()]
    call = vars(type(value)).get("__call__")
    return [*inner, ("", call)] if inspect.isfunction(call) else inner


def _function_name(function: object) -> str:
    if isinstance(function, partial):
        return _function_name(cast("partial[Any]", function).func)
    name = getattr(function, "__name__", type(function).__name__)
    return "mask_mod" if name == "<lambda>" else str(name)


def _identifier(text: str) -> str:
    """The text as a name of the language: other characters become _, and keywords get one more."""
    name = "".join(c if c.isascii() and (c.isalnum() or c == "_") else "_" for c in text).lstrip("_0123456789")
    return f"{name or 'captured'}_" if name in KEYWORDS or name in DESCRIBE_ARGUMENTS or not name else name


def _definition(function: object) -> SourceLocation | None:
    """The line of its `def` or lambda, below its decorators, and not that of what they made of it."""
    while isinstance(function, partial):
        function = cast("partial[object]", function).func
    if inspect.isfunction(function):
        function = inspect.unwrap(function)
    code = getattr(function, "__code__", None) or getattr(vars(type(function)).get("__call__"), "__code__", None)
    if code is None:
        return None
    first = code.co_firstlineno
    lines = linecache.getlines(code.co_filename)[first - 1 :]
    if lines and lines[0].lstrip().startswith("@"):
        first += next((n for n, line in enumerate(lines) if line.lstrip().startswith("def ")), 0)
    return SourceLocation(code.co_filename, first, 1)


def _is_boolean(tensor: torch.Tensor) -> bool:
    return str(tensor.dtype) == "torch.bool"


def _never_falls(table: Table, tensor: torch.Tensor) -> bool:
    along = tensor if table.entries is None else tensor.transpose(-1, -2)
    return bool((along[..., 1:] >= along[..., :-1]).all())
