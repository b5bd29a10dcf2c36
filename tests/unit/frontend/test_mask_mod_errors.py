# pyright: basic
"""What `from_mask_mod` refuses, word for word, and where: at the predicate's definition."""

import linecache
from typing import Any

import pytest
import torch

import cmir
from cmir.errors import SpecError, add_source

DOC = torch.tensor([0, 0, 1])
MATRIX = torch.zeros(3, 3, dtype=torch.int64)
PER_HEAD = torch.zeros(2, 3, dtype=torch.int64)
SMALL = torch.zeros(3, dtype=torch.int8)
REAL = torch.zeros(3)
NARROWER = DOC.int()
BYTES = torch.tensor([44, 255, 3], dtype=torch.uint8)
UNSIGNED = torch.tensor([3_000_000_000, 5, 5], dtype=torch.uint32)
LARGE = torch.tensor([2**63, 5, 5], dtype=torch.uint64)


def writes_into(b, h, q, k):
    x = q.clone()
    torch.add(q, 5, out=x.view(()))
    return x > k


CASES = {
    "no scalars": (
        lambda b, h, q, k: q[0] > k,
        "the mask_mod does not run on four 0-d tensors, indexed by positions, b and h: "
        "too many indices for tensor of dimension 0 (got 1)",
    ),
    "a value": (
        lambda b, h, q, k: q >= k if q > 3 else k == 0,
        "the mask_mod looks at a value: its control flow depends on an index or a tensor, or it calls .item(); "
        "write torch.where(condition, a, b), & and | for if, and, or",
    ),
    "a tuple": (
        lambda b, h, q, k: (q >= k,),
        "the mask_mod cannot be imported: a mask_mod returns one 0-d bool tensor; look for a stray comma, or no return",
    ),
    "an integer": (
        lambda b, h, q, k: q - k,
        "the mask_mod cannot be imported: it returns an integer; a mask_mod returns a condition: visible or not",
    ),
    "a tensor of its own": (
        lambda b, h, q, k: torch.tensor([0, 1, 2])[q] <= k,
        "the mask_mod cannot be imported: it makes a tensor of its own; make it outside, to be captured",
    ),
    "reals": (
        lambda b, h, q, k: q.float() > k,
        "the mask_mod cannot be imported: a mask is integer arithmetic: drop .float() or .to(torch.float32)",
    ),
    "reals of half": (
        lambda b, h, q, k: q.to(torch.float16) > k,
        "the mask_mod cannot be imported: a mask is integer arithmetic: drop .half() or .to(torch.float16)",
    ),
    "complex numbers": (
        lambda b, h, q, k: q.to(torch.complex64) == k,
        "the mask_mod cannot be imported: a mask is integer arithmetic: drop .to(torch.complex64)",
    ),
    "reals of its own": (
        lambda b, h, q, k: q.new_full((), 2, dtype=torch.float32) > k,
        "the mask_mod cannot be imported: a mask is integer arithmetic: write // (rounding down), not /; it computes "
        "in torch.float32",
    ),
    "narrow": (
        lambda b, h, q, k: SMALL[q] + SMALL[k] > 0,
        "the mask_mod cannot be imported: it computes in torch.int8, which wraps; write .long() on what it reads",
    ),
    "a number too large for bytes": (
        lambda b, h, q, k: BYTES[q] == 300,
        "the mask_mod cannot be imported: it compares in torch.uint8, in which 300 wraps; write .long() on what it "
        "reads",
    ),
    "a number too small for bytes": (
        lambda b, h, q, k: BYTES[q] > -1,
        "the mask_mod cannot be imported: it compares in torch.uint8, in which -1 wraps; write .long() on what it "
        "reads",
    ),
    "a number too large for int8": (
        lambda b, h, q, k: SMALL[q] == 300,
        "the mask_mod cannot be imported: it compares in torch.int8, in which 300 wraps; write .long() on what it "
        "reads",
    ),
    "an int64 as an int32": (
        lambda b, h, q, k: (NARROWER[q].view(1) > DOC[k]).view(()),
        "the mask_mod cannot be imported: it compares in torch.int32, in which a torch.int64 wraps; write .long() on "
        "what it reads",
    ),
    "bits of a number": (
        lambda b, h, q, k: BYTES[q].view(torch.int8) > k,
        "the mask_mod cannot be imported: it reads the bits of a number as torch.int8; write .to(torch.int8)",
    ),
    "numbers of 64 bits without a sign": (
        lambda b, h, q, k: LARGE[q].long() > k,
        "the mask_mod cannot be imported: captured tensor 'LARGE': expected integers below 2**63, got a torch.uint64 "
        "with larger ones",
    ),
    "an int32 of what has no sign": (
        lambda b, h, q, k: UNSIGNED[q].int() > k,
        "the mask_mod cannot be imported: it makes an int32 of torch.uint32, which wraps; write .long() in place of "
        ".int()",
    ),
    "out=": (
        writes_into,
        "the mask_mod cannot be imported: out= writes into a tensor; use what the function returns",
    ),
    "two positions": (
        lambda b, h, q, k: MATRIX[q, k] > 0,
        "the mask_mod cannot be imported: a captured tensor is read at two positions; a matrix is no metadatum: write "
        "the rule that makes it (of ancestors a loop over a table of parents, at = parent[at])",
    ),
    "out of order": (
        lambda b, h, q, k: PER_HEAD[q, h] > 0,
        "the mask_mod cannot be imported: a captured tensor is indexed by b, then h, then a position, in this order",
    ),
    "real metadata": (
        lambda b, h, q, k: REAL[q] > 0,
        "the mask_mod cannot be imported: metadata are integers or booleans; it captures a tensor of torch.float32",
    ),
    "a head": (
        lambda b, h, q, k: (h > 1) & (q >= k),
        "the mask_mod cannot be imported: 'h' may only index captured tensors: make what depends on it one, and index "
        "it by 'h'",
    ),
    "a real number": (
        lambda b, h, q, k: torch.where(q > k, q, k) > 1.5,
        "the mask_mod cannot be imported: a mask is integer arithmetic: write // (rounding down), not /; it uses 1.5",
    ),
    "from the end": (
        lambda b, h, q, k: DOC[-1] == k,
        "the mask_mod cannot be imported: it reads 'DOC' at -1, from its end; write the place from its start",
    ),
    "a whole tensor": (
        lambda b, h, q, k: (q == DOC).any(),
        "the mask_mod cannot be imported: a captured tensor of shape (3,) is used without an index for each dimension; "
        "read its entries one by one, (t[q, 0] == x) | (t[q, 1] == x) for any",
    ),
    "bits": (
        lambda b, h, q, k: (q & k) == 0,
        "the mask_mod cannot be imported: '&' takes conditions, not integers; bits of a number are // and % by powers "
        "of 2",
    ),
    "a power": (
        lambda b, h, q, k: (q - k) ** 2 < 9,
        "the mask_mod cannot be imported: a rule has no **; a circle is a reach for each distance in rows, as in "
        "cmir/zoo/clear.mlir",
    ),
    "a square": (
        lambda b, h, q, k: (q % 4 - k % 4) * (q % 4 - k % 4) < 9,
        "the mask_mod cannot be imported: '*' multiplies by an integer known at compile time, got (i % 4 - j % 4) * "
        "(i % 4 - j % 4); a circle is a reach for each distance in rows, as in cmir/zoo/clear.mlir",
    ),
    "a foreign operator": (
        lambda b, h, q, k: torch.gcd(q, k) == 1,
        "the mask_mod cannot be imported: the rule language has nothing for torch's gcd; it has integer "
        "arithmetic, comparisons, &, |, ~, torch.where, abs, minimum, maximum, clamp, look-ups",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_message(name: str) -> None:
    mask_mod, message = CASES[name]
    with pytest.raises(SpecError) as raised:
        cmir.from_mask_mod(mask_mod)
    assert raised.value.message == message
    assert raised.value.location is not None
    assert raised.value.location.file == __file__


def test_a_table_that_is_not_captured() -> None:
    with pytest.raises(SpecError) as raised:
        cmir.from_mask_mod(lambda b, h, q, k: DOC[q] == DOC[k], nondecreasing=["doc"])
    assert raised.value.message == "mask_mod captures no table 'doc' to be nondecreasing; its tables: DOC"


@pytest.mark.parametrize(
    ("predicate", "takes"),
    [
        (lambda b, h, q: q > 0, r"<lambda>\(b, h, q\)"),
        (lambda b, h, q, k, radius: q - k < radius, r"<lambda>\(b, h, q, k, radius\)"),
        (lambda b, h, q, k, *, radius: q - k < radius, r"<lambda>\(b, h, q, k, \*, radius\)"),
    ],
)
def test_a_function_of_other_arguments(predicate: Any, takes: str) -> None:
    message = rf"^mask_mod: expected a function of \(b, h, q_idx, kv_idx\), got {takes}$"
    with pytest.raises(TypeError, match=message):
        cmir.from_mask_mod(predicate)


def test_a_string_for_a_list() -> None:
    with pytest.raises(TypeError) as raised:
        cmir.from_mask_mod(lambda b, h, q, k: q >= k, nondecreasing="DOC")
    assert str(raised.value) == "nondecreasing: expected a list of names, got 'DOC'; write ['DOC']"


def test_terms() -> None:
    spec = cmir.MaskSpec("m")
    with pytest.raises(SpecError) as raised:
        _ = spec.i * spec.j
    assert raised.value.message == "'*' multiplies by an integer known at compile time, got i * j"
    deep = spec.i
    for _ in range(3000):
        deep = deep + 1
    with pytest.raises(SpecError) as raised:
        spec.region("all", 0, spec.rows, visible=deep <= spec.j)
    assert raised.value.message == "the term is nested too deeply for the compiler; make it flatter"
    large = spec.i
    with pytest.raises(SpecError) as raised:
        for k in range(20):
            large = spec.where(large < k, large + 1, spec.j)  # DOUBLED
    assert raised.value.message == "an expression of the rule grows past 100000 terms; make it simpler"
    assert raised.value.location is not None and "# DOUBLED" in linecache.getline(__file__, raised.value.location.line)


def test_terms_of_a_predicate() -> None:
    def deep(b, h, q, k):
        total = q
        for _ in range(3000):
            total = total + q
        return total < k

    def large(b, h, q, k):
        for n in range(20):
            q = torch.where(q < n, q + 1, k)
        return q < k

    for predicate, message in (
        (deep, "the term is nested too deeply for the compiler; make it flatter"),
        (large, "an expression of the rule grows past 100000 terms; make it simpler"),
    ):
        with pytest.raises(SpecError) as raised:
            cmir.from_mask_mod(predicate)
        assert raised.value.message == f"the mask_mod cannot be imported: {message}"
        assert raised.value.location is not None and raised.value.location.file == __file__


def test_a_module_without_such_a_name() -> None:
    with pytest.raises(AttributeError) as raised:
        _ = cmir.Mask  # pyright: ignore[reportAttributeAccessIssue]
    assert str(raised.value) == "module 'cmir' has no attribute 'Mask'; did you mean 'MaskSpec'?"


def _in_three_lines(b, h, q, k):
    near = (q - k).abs() < 4
    far = (q - k) ** 2 < 9
    return near | far


def _in_two_regions(b, h, q, k):
    inside = DOC[q] == DOC[k]
    early = k <= q
    return torch.where(q < 5, early, inside)


def test_what_cannot_be_imported_is_shown_at_its_line() -> None:
    with pytest.raises(SpecError) as raised:
        cmir.from_mask_mod(_in_three_lines)
    first = _in_three_lines.__code__.co_firstlineno
    assert raised.value.location is not None
    assert (raised.value.location.line, raised.value.location.column) == (first + 2, 11)


def test_clauses_are_of_the_lines_that_say_them() -> None:
    mask = cmir.compile(cmir.from_mask_mod(_in_two_regions))
    first = _in_two_regions.__code__.co_firstlineno
    said = str(mask.explain(1, 0, rows=9, DOC=torch.zeros(9, dtype=torch.int64)))
    assert f"clause rows_0.0 holds  ({__file__}:{first + 2})" in said
    said = str(mask.explain(7, 0, rows=9, DOC=torch.zeros(9, dtype=torch.int64)))
    assert f"clause rows_1.0 holds  ({__file__}:{first + 1})" in said
    assert f"{__file__}:{first + 1}:14: remark: " in mask.remarks[0]


def test_clauses_may_be_of_several_files() -> None:
    name = "of_another_file.py"
    add_source(name, text := "def of_another_file(b, h, q, k):\n    return q - k < 4\n")
    space: dict = {}
    exec(compile(text, name, "exec"), space)
    other = space["of_another_file"]
    mask = cmir.compile(cmir.from_mask_mod(lambda b, h, q, k: other(b, h, q, k) & (k <= q)))
    here = test_clauses_may_be_of_several_files.__code__.co_firstlineno + 6
    assert f"clause all.0 holds  ({__file__}:{here}, {name}:2)" in str(mask.explain(3, 1, rows=9))
