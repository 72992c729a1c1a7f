# SPDX-License-Identifier: Apache-2.0
"""Writes tiny random causal language models and their token losses, as transformers computes them.

usage: make_lm_models.py OUT_DIR      (needs torch and transformers)

tests/data/lm was made by it with transformers 5.24.0 and torch 2.13.0. Weights are bfloat16 so that files stay small;
the losses are those of float32 arithmetic on them, with the soft-max in float64.
"""
import json
import pathlib
import shutil
import sys

import torch
from transformers import AutoConfig, AutoModelForCausalLM

TOKENS = 48
SMALL = dict(vocab_size=37, hidden_size=16, intermediate_size=25, num_hidden_layers=2, num_attention_heads=4,
             num_key_value_heads=2, max_position_embeddings=64, bos_token_id=1, eos_token_id=2, pad_token_id=None)
MODELS = {
    "llama-biases": ("llama", dict(SMALL, head_dim=6, attention_bias=True, mlp_bias=True), {}),
    "llama-llama3-rope": ("llama", dict(SMALL, head_dim=16, tie_word_embeddings=True), {
        "rope_theta": 500.0, "rope_scaling": {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0,
                                              "high_freq_factor": 4.0, "original_max_position_embeddings": 16}}),
    "llama-linear-rope": ("llama", dict(SMALL, num_key_value_heads=4, rope_parameters={
        "rope_type": "linear", "factor": 4.0, "rope_theta": 1000.0}), {}),
    "mistral-window": ("mistral", dict(SMALL, sliding_window=5, num_key_value_heads=1), {}),
    "qwen2-biases": ("qwen2", dict(SMALL), {}),
    "qwen2-window": ("qwen2", dict(SMALL, use_sliding_window=True, sliding_window=7, max_window_layers=1), {}),
    "qwen3-head-norms": ("qwen3", dict(SMALL, head_dim=8, tie_word_embeddings=True), {}),
    "gpt2": ("gpt2", dict(vocab_size=37, n_embd=18, n_head=3, n_layer=2, n_positions=64, n_inner=29), {}),
}


def old_spelling(path, extra):
    """A config.json as transformers 4 wrote it."""
    config = json.loads(path.read_text())
    config.pop("rope_parameters", None)
    config.update(extra)
    path.write_text(json.dumps(config, indent=1) + "\n")


def main():
    out = pathlib.Path(sys.argv[1])
    for number, (name, (kind, settings, extra)) in enumerate(MODELS.items()):
        folder = out / name
        shutil.rmtree(folder, ignore_errors=True)
        torch.manual_seed(number)
        model = AutoModelForCausalLM.from_config(AutoConfig.for_model(kind, **settings))
        for key, tensor in model.named_parameters():
            spread = 0.3 if tensor.dim() == 1 else (1.0 if "embed" in key or "wte" in key else 0.35)
            base = 1.0 if "norm" in key or "ln_" in key else 0.0
            tensor.data = (base * key.endswith("weight") + spread * torch.randn(tensor.shape))
        model.tie_weights()
        model.to(torch.bfloat16).save_pretrained(folder)
        (folder / "generation_config.json").unlink(missing_ok=True)
        if extra:
            old_spelling(folder / "config.json", extra)
        model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager").eval()
        ids = torch.randint(settings["vocab_size"], (1, TOKENS))
        with torch.inference_mode():
            logits = model(ids).logits[0, :-1].double()
        losses = -logits.log_softmax(-1).gather(1, ids[0, 1:, None])[:, 0]
        (folder / "losses.json").write_text(json.dumps({
            "ids": ids[0].tolist(), "losses": [round(x, 7) for x in losses.tolist()],
            "greedy": [int(x) for x in (logits.argmax(-1) == ids[0, 1:])]}) + "\n")
        print(name, sum(f.stat().st_size for f in folder.iterdir()), "bytes")


main()
