"""A GPT small enough for float64 tests, cut into stages, and the same model written out."""

import math

import torch

from mpedu.keyed import keyed_generator
from mpedu.model import GPTConfig, build_stage

SMALL = GPTConfig(vocab_size=17, n_layers=4, d_model=12, n_heads=3, n_positions=9, d_ff=20)
DROPPING = GPTConfig(vocab_size=17, n_layers=4, d_model=12, n_heads=3, n_positions=9, dropout=0.3)


def stages_of(config, n_stages, dtype=torch.float64):
    return [build_stage(config, n_stages, stage, dtype=dtype) for stage in range(n_stages)]


def parameters_of(stages):
    return {name: p for stage in stages for name, p in stage.named_parameters()}


def moved(stages):
    """The stages with every parameter off its initial value: biases of 0 would hide mistakes."""
    with torch.no_grad():
        for name, p in parameters_of(stages).items():
            noise = torch.randn(p.shape, dtype=torch.float64, generator=keyed_generator(name))
            p.add_(0.3 * noise)
    return stages


def tokens(n_samples=3, n_tokens=7, vocab_size=17):
    shape = (n_samples, n_tokens + 1)
    drawn = torch.randint(vocab_size, shape, generator=keyed_generator("tokens"))
    return drawn[:, :-1].contiguous(), drawn[:, 1:].contiguous()


def chained(stages, x, key=None):
    for stage in stages:
        x = stage(x, key)
    return x


def gradients(stages):
    return {name: p.grad for name, p in parameters_of(stages).items()}


def norm(x, p, name):
    centred = x - x.mean(-1, keepdim=True)
    deviation = (centred.square().mean(-1, keepdim=True) + 1e-5).sqrt()
    return centred / deviation * p[f"{name}.weight"] + p[f"{name}.bias"]


def linear(x, p, name):
    return torch.einsum("std,ed->ste", x, p[f"{name}.weight"]) + p[f"{name}.bias"]


def reference_attention(x, p, name, n_heads):
    d_model, n_tokens = x.shape[-1], x.shape[1]
    query, key, value = linear(x, p, f"{name}.qkv").split(d_model, -1)
    later = torch.ones(n_tokens, n_tokens, dtype=torch.bool).triu(1)
    heads = []
    for columns in torch.arange(d_model).chunk(n_heads):
        score = query[..., columns] @ key[..., columns].mT / math.sqrt(len(columns))
        weight = score.masked_fill(later, -math.inf).exp()
        heads.append(weight / weight.sum(-1, keepdim=True) @ value[..., columns])
    return linear(torch.cat(heads, -1), p, f"{name}.out")


def reference(p, x, config):
    """Logits of the whole model from its named parameters, written out without its layers."""
    x = p["token_embedding.weight"][x] + p["position_embedding.weight"][torch.arange(x.shape[1])]
    for block in (f"blocks.{layer}" for layer in range(config.n_layers)):
        h = norm(x, p, f"{block}.attention_norm")
        x = x + reference_attention(h, p, f"{block}.attention", config.n_heads)
        h = linear(norm(x, p, f"{block}.ffn_norm"), p, f"{block}.ffn.up")
        h = h * 0.5 * (1 + torch.erf(h / math.sqrt(2)))
        x = x + linear(h, p, f"{block}.ffn.down")
    return norm(x, p, "final_norm") @ p["head.weight"].T


def reference_loss(logits, targets):
    logs = logits - logits.exp().sum(-1, keepdim=True).log()
    return -logs.gather(-1, targets[..., None]).sum()
