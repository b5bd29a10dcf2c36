# pyright: basic
"""attn_implementation="cmir" against "sdpa": masks pair by pair, then logits and gradients of small models."""

import importlib
import subprocess
import sys
from typing import Any

import pytest
import torch

import cmir
from cmir.runtime.descriptor import Descriptor

hf: Any = pytest.importorskip("transformers")
masking: Any = importlib.import_module("transformers.masking_utils")
integration: Any = importlib.import_module("cmir.integrations.transformers")
integration.register()

SMALL: dict[str, Any] = dict(
    vocab_size=32, hidden_size=32, intermediate_size=32, num_hidden_layers=2, num_attention_heads=2,
    num_key_value_heads=1, head_dim=16, max_position_embeddings=64, pad_token_id=0, eos_token_id=1, bos_token_id=2,
)  # fmt: skip
LOCAL: dict[str, Any] = dict(sliding_window=5, layer_types=["sliding_attention", "full_attention"])
MODELS = {
    "qwen3": lambda: hf.Qwen3ForCausalLM(hf.Qwen3Config(**SMALL, **LOCAL, use_sliding_window=True)),
    "llama": lambda: hf.LlamaForCausalLM(hf.LlamaConfig(**SMALL)),
    "mistral": lambda: hf.MistralForCausalLM(hf.MistralConfig(**SMALL, sliding_window=4)),
    "gemma3": lambda: hf.Gemma3ForCausalLM(hf.Gemma3TextConfig(**SMALL, **LOCAL, query_pre_attn_scalar=16)),
}

N = 18
PACKED = torch.tensor([[*range(7), *range(3), *range(8)], [*range(1), *range(12), *range(5)]])
PADDING = {
    "left": torch.tensor([[0] * 5 + [1] * 13, [1] * 18]),
    "right": torch.tensor([[1] * 18, [1] * 4 + [0] * 14]),
    "holes": torch.tensor([[1, 0] * 9, [1] * 9 + [0] * 3 + [1] * 6]),
}
INPUTS: dict[str, dict] = {
    "plain": {},
    "packed": {"position_ids": PACKED},
    **{name: {"attention_mask": mask} for name, mask in PADDING.items()},
}


def model(name: str) -> Any:
    torch.manual_seed(0)
    return MODELS[name]().eval()


@pytest.mark.parametrize(
    "name, given", [*(("qwen3", given) for given in INPUTS), *((m, "packed") for m in list(MODELS)[1:])]
)
def test_logits_and_gradients_are_those_of_sdpa(name: str, given: str) -> None:
    net = model(name)
    ids = torch.randint(3, 32, (2, N))
    told = PADDING[given].bool() if given in PADDING else torch.ones(2, N, dtype=torch.bool)
    seen = {}
    for implementation in ("sdpa", "cmir"):
        net.set_attn_implementation(implementation)
        net.zero_grad()
        logits = net(input_ids=ids, use_cache=False, **INPUTS[given]).logits[told]
        logits.log_softmax(-1)[:, 5].sum().backward()
        seen[implementation] = [logits, *(p.grad.clone() for p in net.parameters() if p.grad is not None)]
    for got, want in zip(seen["cmir"], seen["sdpa"], strict=True):
        torch.testing.assert_close(got, want, rtol=1e-3, atol=2e-5)


def dense(mask: Any, rows: int, cols: int) -> torch.Tensor:
    seen = mask.to_dense() if isinstance(mask, Descriptor) else mask
    return seen.expand(2, 1, rows, cols)


BLOCKS = torch.tensor([[-1] * 3 + [0] * 4 + [-1] * 2 + [1] * 4 + [2] * 5, [0] * 2 + [-1] * 14 + [1] * 2])
SCATTERED = torch.tensor([[-1, 0, 1] * 6, [0, 0, 1, 1, -1, -1] * 3])
PREFIX = torch.tensor([4, 9])
MASKS: dict[str, tuple[Any, dict]] = {
    "causal": (masking.create_causal_mask, {}),
    "sliding": (masking.create_sliding_window_causal_mask, {}),
    "chunked": (masking.create_chunked_causal_mask, {}),
    "bidirectional": (masking.create_bidirectional_mask, {}),
    "bidirectional_sliding": (masking.create_bidirectional_sliding_window_mask, {}),
    "images": (masking.create_causal_mask, {"block_sequence_ids": BLOCKS}),
    "local_images": (
        masking.create_causal_mask,
        {"or_mask_function": masking.blockwise_overlay(BLOCKS), "and_mask_function": masking.sliding_window_overlay(5)},
    ),
    "scattered": (masking.create_causal_mask, {"block_sequence_ids": SCATTERED}),
    "prefix": (masking.create_causal_mask, {"or_mask_function": lambda b, h, q, kv: kv < PREFIX[b]}),
}
BIDIRECTIONAL = ("bidirectional", "bidirectional_sliding")


OF_MASKS = [*((name, given) for name in MASKS for given in ("plain", "packed", "left")), ("causal", "holes")]


@pytest.mark.parametrize("name, given", OF_MASKS)
def test_masks_are_those_of_sdpa(name: str, given: str) -> None:
    create, options = MASKS[name]
    arguments = dict(INPUTS[given])
    if name in BIDIRECTIONAL:
        arguments.pop("position_ids", None)
    arguments = {"attention_mask": None, "cache": None, **arguments}
    masks = []
    for implementation in ("sdpa", "cmir"):
        config = hf.Qwen3Config(**SMALL, use_sliding_window=True, sliding_window=5, attn_implementation=implementation)
        config.attention_chunk_size = 6
        config.is_causal = True
        skip = {"allow_is_bidirectional_skip" if name in BIDIRECTIONAL else "allow_is_causal_skip": False}
        masks.append(create(config, torch.zeros(2, N, 32), **arguments, **options, **skip))
    assert isinstance(masks[1], Descriptor)
    # A bidirectional mask may be skipped all the same.
    want = torch.ones(2, 1, N, N, dtype=torch.bool) if masks[0] is None else masks[0]
    assert torch.equal(dense(masks[1].check(), N, N), dense(want, N, N))
    # transformers looks or_mask_function's tensors up by position within a sequence: no intervals say that of these.
    assert not masks[1].signature.bits or name == "scattered" or (name, given) == ("local_images", "packed")


def test_rows_of_images_and_of_packed_sequences_need_one_interval() -> None:
    config = hf.Qwen3Config(**SMALL, attn_implementation="cmir")
    x = torch.zeros(2, N, 32)
    images = masking.create_causal_mask(config, x, None, None, block_sequence_ids=BLOCKS)
    packed = masking.create_causal_mask(config, x, None, None, position_ids=PACKED)
    for mask in (images, packed):
        assert (mask.signature.row_slots, mask.signature.col_slots) == (1, 1)


def test_lengths_and_data_do_not_compile_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    config = hf.Qwen3Config(**SMALL, attn_implementation="cmir")
    first = masking.create_causal_mask(config, torch.zeros(1, 12, 32), None, None, position_ids=PACKED[:1, :12])

    def never(*_: object, **__: object) -> None:
        raise AssertionError("the mask was traced again")

    monkeypatch.setattr(integration, "from_mask_mod", never)
    positions = torch.tensor([[*range(3), *range(20), *range(1)]])
    second = masking.create_causal_mask(config, torch.zeros(1, 24, 32), None, None, position_ids=positions)
    assert second.module is first.module
    ids = torch.tensor([0] * 3 + [1] * 20 + [2])
    assert torch.equal(second.to_dense()[0, 0], (ids[:, None] == ids) & torch.ones(24, 24, dtype=torch.bool).tril())


def test_numbers_of_a_function_are_part_of_its_mask() -> None:
    for size in (3, 4):
        config = hf.Qwen3Config(**SMALL, use_sliding_window=True, sliding_window=size, attn_implementation="cmir")
        mask = masking.create_sliding_window_causal_mask(config, torch.zeros(1, N, 32), None, None)
        assert mask.to_dense().sum() == size * N - size * (size - 1) // 2


def test_a_mask_is_made_once_for_all_layers(monkeypatch: pytest.MonkeyPatch) -> None:
    made = []
    describe = cmir.CompiledMask.describe
    monkeypatch.setattr(
        cmir.CompiledMask, "describe", lambda self, **given: made.append(given) or describe(self, **given)
    )
    net = hf.LlamaForCausalLM(hf.LlamaConfig(**{**SMALL, "num_hidden_layers": 3})).eval()
    net.set_attn_implementation("cmir")
    with torch.no_grad():
        net(input_ids=torch.randint(3, 32, (1, 6)), use_cache=False)
    assert len(made) == 1


@pytest.mark.parametrize("cache", [None, "static"])
def test_generation_gives_the_tokens_of_sdpa(cache: str | None) -> None:
    net = model("qwen3")
    ids = torch.randint(3, 32, (2, 9))
    padding = torch.ones_like(ids)
    padding[0, :4] = 0
    tokens = []
    for implementation in ("sdpa", "cmir"):
        net.set_attn_implementation(implementation)
        options = dict(max_new_tokens=3, do_sample=False, cache_implementation=cache, disable_compile=True)
        tokens.append(net.generate(ids, attention_mask=padding, **options))
    assert torch.equal(*tokens)


def test_a_prompt_in_parts_with_a_cache() -> None:
    net = model("qwen3")
    ids = torch.randint(3, 32, (1, N))
    net.set_attn_implementation("sdpa")
    want = net(input_ids=ids, use_cache=False).logits
    net.set_attn_implementation("cmir")
    first = net(input_ids=ids[:, :8], use_cache=True)
    known = len(integration._masks)
    parts = [first.logits]
    for part in (slice(8, 12), slice(12, 18)):
        parts.append(net(input_ids=ids[:, part], cache=first.cache, use_cache=True).logits)
    torch.testing.assert_close(torch.cat(parts, 1), want, rtol=1e-4, atol=1e-5)
    assert len(integration._masks) <= known + 2  # full and local layers with offsets, whatever those are


def test_compiled_and_recomputed() -> None:
    net = hf.LlamaForCausalLM(hf.LlamaConfig(**{**SMALL, "num_hidden_layers": 1}))
    net.set_attn_implementation("cmir")
    ids = torch.randint(3, 32, (1, 8))

    def run(function: Any) -> list[torch.Tensor]:
        net.zero_grad()
        logits = function(input_ids=ids, use_cache=False).logits
        logits[..., 3].sum().backward()
        return [logits, *(p.grad.clone() for p in net.parameters())]

    want = run(net)
    torch.testing.assert_close(run(torch.compile(net, backend="aot_eager")), want)
    net.activation_checkpointing_enable()
    torch.testing.assert_close(run(net), want)


def test_attention_sinks() -> None:
    config = {**SMALL, "num_hidden_layers": 1, "layer_types": ["sliding_attention"], "sliding_window": 5}
    torch.manual_seed(0)
    net = hf.GptOssForCausalLM(hf.GptOssConfig(**config, num_local_experts=2, num_experts_per_tok=1)).eval()
    torch.nn.init.normal_(net.model.layers[0].self_attn.sinks)
    ids = torch.randint(3, 32, (1, 10))
    outs = []
    for implementation in ("eager", "cmir"):
        net.set_attn_implementation(implementation)
        net.zero_grad()
        logits = net(input_ids=ids, use_cache=False).logits
        logits[..., 3].sum().backward()
        sinks = net.model.layers[0].self_attn.sinks.grad.clone()
        outs.append((logits, sinks, net.generate(ids, max_new_tokens=2, do_sample=False)))
    torch.testing.assert_close(outs[1], outs[0], rtol=1e-3, atol=1e-5)


@pytest.fixture
def said(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What the integration warns of."""
    warnings: list[str] = []
    monkeypatch.setattr(integration.logger, "warning_once", lambda text: text in warnings or warnings.append(text))
    return warnings


def outcome(net: Any, implementation: str, **given: Any) -> list[torch.Tensor]:
    """Logits of the tokens that are none of padding, and gradients."""
    torch.manual_seed(1)
    net.set_attn_implementation(implementation)
    net.zero_grad()
    ids = torch.randint(3, 32, (2, N))
    logits = net(input_ids=ids, use_cache=False, **given).logits
    if "attention_mask" in given:
        logits = logits[given["attention_mask"].bool()]
    logits.log_softmax(-1)[..., 5].sum().backward()
    return [logits, *(p.grad.clone() for p in net.parameters() if p.grad is not None)]


def small(net: str = "Llama", **options: Any) -> Any:
    torch.manual_seed(0)
    config = {"Llama": hf.LlamaConfig, "Gemma3": hf.Gemma3TextConfig}[net](**{**SMALL, **options})
    return getattr(hf, f"{net}ForCausalLM")(config)


LEFT: dict[str, Any] = {
    "head dim of 24": (
        lambda: small("Gemma3", head_dim=24, **LOCAL, query_pre_attn_scalar=16),
        "Gemma3Attention to sdpa: cmir takes head dims that are a multiple of 16 up to 256, here it is 24",
    ),
    "head dim of 272": (
        lambda: small(head_dim=272),
        "LlamaAttention to sdpa: cmir takes head dims that are a multiple of 16 up to 256, here it is 272",
    ),
    "float64": (
        lambda: small().double(),
        "LlamaAttention to sdpa: cmir computes in float32, float16 or bfloat16, here it is float64",
    ),
    "dropout": (
        lambda: small(attention_dropout=0.25).train(),
        "LlamaAttention to sdpa: cmir has no dropout, here 0.25",
    ),
}


@pytest.mark.parametrize("given", ["plain", "packed", "left"])
@pytest.mark.parametrize("what", LEFT)
def test_layers_that_ask_for_more_go_to_sdpa_with_one_warning(what: str, given: str, said: list[str]) -> None:
    make, why = LEFT[what]
    net = make()
    for got, want in zip(*(outcome(net, each, **INPUTS[given]) for each in ("cmir", "sdpa")), strict=True):
        torch.testing.assert_close(got, want, rtol=1e-4, atol=1e-6)
    assert said == [f"cmir leaves the attention of {why}"]


def test_sdpa_gives_rows_that_see_nothing_what_cmir_gives_them(said: list[str]) -> None:
    """Output and gradients 0, not NaN; for a query of two heads and for one."""
    hidden = integration.make_mask(2, N, N, 0, 0, masking.causal_mask_function, PADDING["left"])
    module = torch.nn.Module()
    q, k, v = (torch.randn(2, 2, N, 32, dtype=torch.float64, requires_grad=True) for _ in range(3))
    outs = []
    for dtype in (torch.float32, torch.float64):
        out, _ = integration.attention_forward(module, q.to(dtype), k.to(dtype), v.to(dtype), hidden)
        grads = torch.autograd.grad(out.double().cos().sum(), (q, k, v))
        assert not out[0, :5].any() and not grads[0][0, :, :5].any()
        outs.append([out.double(), *grads])
    assert len(said) == 1
    for got, want in zip(*outs, strict=True):
        torch.testing.assert_close(got, want, rtol=1e-3, atol=1e-5)


def test_without_transformers_what_to_install_is_said() -> None:
    program = (
        "import sys; sys.modules['transformers'] = None\n"
        "import cmir\n"
        "try: import cmir.integrations.transformers\n"
        "except cmir.CmirError as error: print(error)\n"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert run.stdout.startswith(
        "cmir.integrations.transformers needs torch and transformers 5.24 or newer: "
        "pip install 'cmir[torch,transformers]' ("
    )


def test_a_position_bias_goes_to_sdpa(said: list[str]) -> None:
    """As T5 has it: added to the scores, one for every head and pair."""
    mask = integration.make_mask(2, N, N, 0, 0, masking.causal_mask_function)
    module = torch.nn.Module()
    q, k, v = (torch.randn(2, 2, N, 16) for _ in range(3))
    bias = torch.randn(1, 2, N, N)
    out, _ = integration.attention_forward(module, q, k, v, mask, position_bias=bias, scaling=1.0)
    scores = (q @ k.transpose(-1, -2) + bias).masked_fill(~mask.to_dense(), -torch.inf)
    torch.testing.assert_close(out, (scores.softmax(-1) @ v).transpose(1, 2), rtol=1e-4, atol=1e-5)
    assert said == ["cmir leaves the attention of Module to sdpa: cmir has no position_bias"]


@pytest.mark.parametrize("options", [{"head_dim": 256}, {"head_dim": 48}])
def test_head_dims_that_the_kernels_take(options: dict, said: list[str]) -> None:
    net = small("Gemma3", **options, **LOCAL, query_pre_attn_scalar=16, num_hidden_layers=2)
    for got, want in zip(*(outcome(net, each) for each in ("cmir", "sdpa")), strict=True):
        torch.testing.assert_close(got, want, rtol=1e-3, atol=2e-5)
    assert not said


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision(dtype: torch.dtype, said: list[str]) -> None:
    net = small().to(dtype).eval()
    want = outcome(small().double().eval(), "sdpa")[0]
    errors = [(outcome(net, each)[0].double() - want).abs().max() for each in ("cmir", "sdpa")]
    assert errors[0] < 2 * errors[1]
    assert not said


def test_sinks_beside_a_head_dim_that_is_left_to_sdpa(said: list[str]) -> None:
    torch.manual_seed(0)
    own = dict(num_hidden_layers=1, layer_types=["sliding_attention"], sliding_window=5, head_dim=24)
    net = hf.GptOssForCausalLM(hf.GptOssConfig(**{**SMALL, **own}, num_local_experts=2, num_experts_per_tok=1)).eval()
    torch.nn.init.normal_(net.model.layers[0].self_attn.sinks)
    got, want = (outcome(net, each, **INPUTS["left"])[0] for each in ("cmir", "eager"))
    torch.testing.assert_close(got, want, rtol=1e-4, atol=1e-6)
    assert len(said) == 1


def test_a_layer_that_is_left_to_sdpa_compiles_recomputes_and_generates(said: list[str]) -> None:
    net = small(head_dim=24, num_hidden_layers=1).eval()
    ids, padding = torch.randint(3, 32, (2, N)), PADDING["left"]
    net.set_attn_implementation("sdpa")
    want = net.generate(ids, attention_mask=padding, max_new_tokens=3, do_sample=False)
    net.set_attn_implementation("cmir")
    assert torch.equal(net.generate(ids, attention_mask=padding, max_new_tokens=3, do_sample=False), want)
    eager = net(input_ids=ids, use_cache=False).logits
    torch.testing.assert_close(torch.compile(net, backend="aot_eager")(input_ids=ids, use_cache=False).logits, eager)
    net.train().activation_checkpointing_enable()
    for got, want in zip(*(outcome(net, each, **INPUTS["left"]) for each in ("cmir", "sdpa")), strict=True):
        torch.testing.assert_close(got, want, rtol=1e-4, atol=1e-6)


def test_the_dense_mask_of_a_descriptor_is_made_once_for_all_layers(monkeypatch: pytest.MonkeyPatch) -> None:
    made = []
    dense = Descriptor.to_sdpa
    monkeypatch.setattr(Descriptor, "to_sdpa", lambda self: made.append(1) or dense(self))
    net = small(head_dim=24, num_hidden_layers=3).eval()
    net.set_attn_implementation("cmir")
    kept = len(integration._dense_masks)
    with torch.no_grad():
        net(input_ids=torch.randint(3, 32, (1, 6)), use_cache=False)
    assert len(made) == 1
    assert len(integration._dense_masks) == kept  # it lives as long as its descriptor


def test_attention_weights_are_not_returned(said: list[str]) -> None:
    net = small(num_hidden_layers=1).eval()
    net.set_attn_implementation("cmir")
    net(input_ids=torch.randint(3, 32, (1, 6)), use_cache=False, output_attentions=True)
    assert said == ["cmir returns no attention weights; for output_attentions take attn_implementation='eager'"]
    with pytest.raises(ValueError, match="output_attentions"):
        net.config.output_attentions = True


def test_what_neither_cmir_nor_sdpa_has_is_refused_by_name() -> None:
    net = hf.Gemma2ForCausalLM(hf.Gemma2Config(**SMALL, sliding_window=5, query_pre_attn_scalar=16)).eval()
    net.set_attn_implementation("cmir")
    with pytest.raises(cmir.CmirError, match="no softcap, which Gemma2Attention asks for"):
        net(input_ids=torch.zeros(1, 6, dtype=torch.long), use_cache=False)


def test_a_rule_that_cannot_be_traced_goes_to_sdpa_with_its_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    monkeypatch.setattr(integration.logger, "warning_once", said.append)
    config = hf.Qwen3Config(**SMALL, attn_implementation="cmir")
    mask = masking.create_causal_mask(
        config, torch.zeros(1, 6, 32), None, None, or_mask_function=lambda b, h, q, kv: torch.sin(q * 1.0) > 0.5
    )
    assert isinstance(mask, torch.Tensor)
    assert mask.shape == (1, 1, 6, 6)
    assert "cmir leaves a mask to sdpa" in said[0]


def test_a_function_that_cannot_be_compared_is_traced_every_time() -> None:
    class Prefix:
        def __init__(self, length: int) -> None:
            self.length = length

        def __call__(self, b: Any, h: Any, q: Any, kv: Any) -> Any:
            return kv < self.length

    config, rule, known = hf.Qwen3Config(**SMALL, attn_implementation="cmir"), Prefix(3), len(integration._masks)
    for length in (3, 5):
        rule.length = length
        mask = masking.create_causal_mask(config, torch.zeros(1, 8, 32), None, None, or_mask_function=rule)
        i = torch.arange(8)
        assert torch.equal(mask.to_dense()[0, 0], (i[None] <= i[:, None]) | (i[None] < length))
    assert len(integration._masks) == known


def last(t: torch.Tensor) -> int:
    return t.shape[-1]


def of_helper(t: torch.Tensor) -> Any:
    return lambda b, h, q, k: (k < last(t) - 3) & (t[b, k] >= 0)


def of_caught(t: torch.Tensor) -> Any:
    def rule(b: Any, h: Any, q: Any, k: Any) -> Any:
        try:
            return t[b, 15] <= k
        except IndexError:
            return t[b, 5] <= k

    return rule


def of_branch(t: torch.Tensor) -> Any:
    def rule(b: Any, h: Any, q: Any, k: Any) -> Any:
        return k < q if t[0, 0] > 10 else k <= q

    return rule


LOOKS: dict[str, Any] = {
    "shape": lambda t: lambda b, h, q, k: (k < t.shape[-1] - 10) & (t[b, k] >= 0),
    "size": lambda t: lambda b, h, q, k: k <= q.clamp(max=t.size(1) // 2),
    "length": lambda t: lambda b, h, q, k: (k < len(t[0]) - 3) & (t[b, k] >= 0),
    "numel": lambda t: lambda b, h, q, k: k + 3 < torch.numel(t),
    "iteration": lambda t: lambda b, h, q, k: k < sum(2 for _ in t[0]),
    "unpacked": lambda t: lambda b, h, q, k: k < max(range(len([*t[0]]))),
    "derived": lambda t: lambda b, h, q, k: k < t.nonzero().flatten().shape[0] // 2,
    "helper": of_helper,
    "caught": of_caught,
    "value": lambda t: lambda b, h, q, k: k < int(t[0, 0]),
    "list": lambda t: lambda b, h, q, k: k < t.tolist()[0][0],
    "index": lambda t: lambda b, h, q, k: k < range(3, 60)[t[0, 0]],
    "branch": of_branch,
    "equal": lambda t: lambda b, h, q, k: k <= q + torch.equal(t, t.clamp(max=10)),
    "text": lambda t: lambda b, h, q, k: k < len(repr(t)) // 9,
}


REFUSED = ("iteration", "unpacked", "derived", "equal", "value", "list", "index", "branch", "text")


@pytest.mark.parametrize("name", LOOKS)
def test_what_a_function_asks_of_its_tensors_is_not_remembered(name: str) -> None:
    """A shape is a number of the mask as it is traced: other tensors, another mask. A value is refused, and sdpa's."""
    for length in (14, 22):
        t = torch.arange(length)[None] + length - 5
        rule = LOOKS[name](t)
        mask = integration.make_mask(1, length, length, 0, 0, rule, allow_is_causal_skip=False)
        assert isinstance(mask, Descriptor) == (name not in REFUSED)
        seen = [[bool(rule(*map(torch.tensor, (0, 0, q, k)))) for k in range(length)] for q in range(length)]
        assert torch.equal(dense(mask, length, length)[0, 0], torch.tensor(seen))


def test_a_function_of_ones_own_that_asks_nothing_is_remembered() -> None:
    known = len(integration._masks)
    for length in (14, 22):
        t = torch.arange(length)[None]
        rule = masking.and_masks(lambda b, h, q, k, t=t: torch.where(t[b, k] < 5, k <= q, t[b, q] == 3))
        integration.make_mask(1, length, length, 0, 0, rule)
    assert len(integration._masks) == known + 1


def test_a_table_of_other_width_is_traced_anew() -> None:
    for width in (2, 3):
        t = torch.full((1, 14, width), 7)
        mask = integration.make_mask(1, 14, 14, 0, 0, lambda b, h, q, k, t=t: k < t[b, q, 1])
        assert mask.area.tolist() == [7 * 14]


@pytest.mark.parametrize("table", [False, True])
def test_tensors_of_heads_are_of_heads_every_time(table: bool) -> None:
    known = len(integration._masks)
    for sizes in ([2, 5], [4, 1, 7]):
        w = torch.tensor(sizes)[:, None].expand(-1, 8).contiguous() if table else torch.tensor(sizes)
        rule = lambda b, h, q, k, w=w, table=table: k < (w[h, q] if table else w[h])  # noqa: E731
        mask = integration.make_mask(1, 8, 8, 0, 0, rule)
        assert tuple(mask.to_dense().shape) == (1, len(sizes), 8, 8)
        assert mask.area.tolist() == [8 * size for size in sizes]
    assert len(integration._masks) == known + 1
