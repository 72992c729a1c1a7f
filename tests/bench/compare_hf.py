#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Extractive QA by Hugging Face transformers and by Muster, one after the other on the same cores.

Needs an environment with torch, transformers and numpy:
    compare_hf.py --muster build/release/bin/muster --model DIR --data xquad.en.json --limit 200

Only the loop is timed on both sides (features and answers apart); start-up is printed beside it. Modes:
    default   features padded to 384, batches of 8, as the run_qa example comes
    dynamic   padded to the longest of the batch, batches of 8
    tuned     sorted by length, batches of 32, float32 matmul precision "medium", large heap blocks kept
    bfloat16  sorted by length, batches of 32
"""
import argparse
import json
import os
import subprocess
import sys
import time

HEAP = {"MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": "4294967296", "MALLOC_TOP_PAD_": "268435456"}


def questions(path, limit):
    rows = []
    with open(path, encoding="utf-8") as file:
        for article in json.load(file)["data"]:
            for paragraph in article["paragraphs"]:
                for qa in paragraph["qas"]:
                    rows.append((qa["question"].lstrip(), paragraph["context"]))
    return rows[:limit] if limit else rows


def one_mode(args):
    start = time.perf_counter()
    import torch
    from transformers import AutoModelForQuestionAnswering, AutoTokenizer

    torch.set_num_threads(args.threads)
    if args.mode == "tuned":
        torch.set_float32_matmul_precision("medium")
    tokenizer = AutoTokenizer.from_pretrained(args.model)
    dtype = torch.bfloat16 if args.mode == "bfloat16" else torch.float32
    model = AutoModelForQuestionAnswering.from_pretrained(args.model, dtype=dtype).eval()
    rows = questions(args.data, args.limit)
    encoded = tokenizer([q for q, _ in rows], [c for _, c in rows], truncation="only_second",
                        max_length=384, stride=128, return_overflowing_tokens=True)
    ids, types = encoded["input_ids"], encoded["token_type_ids"]
    order = range(len(ids))
    batch = 8
    if args.mode in ("tuned", "bfloat16"):
        order = sorted(order, key=lambda i: -len(ids[i]))
        batch = 32
    order = list(order)
    begin = time.perf_counter()
    with torch.inference_mode():
        for at in range(0, len(order), batch):
            part = order[at:at + batch]
            width = 384 if args.mode == "default" else max(len(ids[i]) for i in part)
            token = torch.zeros(len(part), width, dtype=torch.long)
            kind = torch.zeros(len(part), width, dtype=torch.long)
            mask = torch.zeros(len(part), width, dtype=torch.long)
            for row, i in enumerate(part):
                token[row, :len(ids[i])] = torch.tensor(ids[i])
                kind[row, :len(ids[i])] = torch.tensor(types[i])
                mask[row, :len(ids[i])] = 1
            output = model(input_ids=token, token_type_ids=kind, attention_mask=mask)
            output.start_logits.float().numpy()
            output.end_logits.float().numpy()
    end = time.perf_counter()
    print(json.dumps({"questions": len(rows), "loop_s": end - begin, "start_s": begin - start}))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--muster", help="the program; without it only the peer is measured")
    parser.add_argument("--model", required=True)
    parser.add_argument("--data", required=True)
    parser.add_argument("--limit", type=int, default=0)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--modes", default="default,dynamic,tuned,bfloat16")
    parser.add_argument("--mode", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.mode:
        one_mode(args)
        return
    rates = {}
    for mode in filter(None, args.modes.split(",")):
        environment = dict(os.environ, HF_HUB_OFFLINE="1")
        if mode in ("tuned", "bfloat16"):
            environment.update(HEAP)
        command = [sys.executable, os.path.abspath(__file__), "--mode", mode, "--model", args.model, "--data",
                   args.data, "--limit", str(args.limit), "--threads", str(args.threads)]
        found = json.loads(subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE).stdout)
        rates[mode] = found["questions"] / found["loop_s"]
        print(f"transformers {mode:<9} {rates[mode]:7.2f} q/s   loop {found['loop_s']:.2f} s   start-up {found['start_s']:.2f} s",
              flush=True)
    if not args.muster:
        return
    command = [args.muster, "bench", "qa", "--json", "--model", args.model, "--data", args.data, "-n", str(args.threads)]
    if args.limit:
        command += ["--limit", str(args.limit)]
    for run in json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)["runs"]:
        rate = run["samples_per_s"]
        line = f"muster       {run['dtype']:<9} {rate:7.2f} q/s   loop {run['loop_s']:.2f} s   start-up {run['start_up_s']:.2f} s"
        line += f"   EM {run['metrics']['exact_match']:.2f} F1 {run['metrics']['f1']:.2f}"
        peers = ["bfloat16"] if run["dtype"] == "bfloat16" else ["default", "dynamic", "tuned"]
        line += "".join(f"   {rate / rates[p]:.2f} x {p}" for p in peers if p in rates)
        print(line)


if __name__ == "__main__":
    main()
