#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Classification by Hugging Face transformers and by Muster, one after the other on the same cores.

Needs an environment with torch and transformers:
    compare_hf_cls.py --muster build/release/bin/muster --model DIR --data stsa.binary.test

The data are lines of `label text`. Only the loop is timed on both sides; tokenising counts in it for the peer's
pipeline, as it is a part of that, and stands before it in the others and in Muster. Modes:
    pipeline  pipeline("text-classification", batch_size=32), file order
    tuned     sorted by length, batches of 32, float32 matmul precision "medium", large heap blocks kept
    bfloat16  the same in bfloat16
"""
import argparse
import json
import os
import subprocess
import sys
import time

HEAP = {"MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": "4294967296", "MALLOC_TOP_PAD_": "268435456"}


def one_mode(args):
    start = time.perf_counter()
    import torch
    from transformers import AutoModelForSequenceClassification, AutoTokenizer, pipeline

    torch.set_num_threads(args.threads)
    if args.mode == "tuned":
        torch.set_float32_matmul_precision("medium")
    tokenizer = AutoTokenizer.from_pretrained(args.model)
    dtype = torch.bfloat16 if args.mode == "bfloat16" else torch.float32
    model = AutoModelForSequenceClassification.from_pretrained(args.model, dtype=dtype).eval()
    with open(args.data, encoding="utf-8") as file:
        rows = [line.rstrip("\n").split(" ", 1) for line in file]
    gold = [int(label) for label, _ in rows]
    texts = [text for _, text in rows]
    predicted = [0] * len(texts)
    if args.mode == "pipeline":
        pipe = pipeline("text-classification", model=model, tokenizer=tokenizer, device="cpu", batch_size=32)
        numbers = {name: number for number, name in model.config.id2label.items()}
        begin = time.perf_counter()
        predicted = [numbers[output["label"]] for output in pipe(texts)]
    else:
        encoded = tokenizer(texts, truncation=True, max_length=512)
        order = sorted(range(len(texts)), key=lambda i: -len(encoded["input_ids"][i]))
        begin = time.perf_counter()
        with torch.inference_mode():
            for at in range(0, len(order), 32):
                part = order[at:at + 32]
                batch = tokenizer.pad({k: [encoded[k][i] for i in part] for k in encoded.keys()}, return_tensors="pt")
                for i, label in zip(part, model(**batch).logits.argmax(-1).tolist()):
                    predicted[i] = label
    end = time.perf_counter()
    print(json.dumps({"rows": len(rows), "loop_s": end - begin, "start_s": begin - start,
                      "accuracy": sum(a == b for a, b in zip(predicted, gold)) / len(gold)}))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--muster", help="the program; without it only the peer is measured")
    parser.add_argument("--model", required=True)
    parser.add_argument("--data", required=True)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--modes", default="pipeline,tuned,bfloat16")
    parser.add_argument("--mode", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.mode:
        one_mode(args)
        return
    rates = {}
    for mode in filter(None, args.modes.split(",")):
        environment = dict(os.environ, HF_HUB_OFFLINE="1", TRANSFORMERS_VERBOSITY="error")
        if mode != "pipeline":
            environment.update(HEAP)
        command = [sys.executable, os.path.abspath(__file__), "--mode", mode, "--model", args.model, "--data",
                   args.data, "--threads", str(args.threads)]
        found = json.loads(subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE).stdout)
        rates[mode] = found["rows"] / found["loop_s"]
        print(f"transformers {mode:<9} {rates[mode]:7.2f} rows/s   loop {found['loop_s']:.2f} s   "
              f"start-up {found['start_s']:.2f} s   accuracy {100 * found['accuracy']:.2f}", flush=True)
    if not args.muster:
        return
    command = [args.muster, "bench", "classification", "--json", "--model", args.model, "--data", args.data, "-n",
               str(args.threads)]
    for run in json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)["runs"]:
        rate = run["samples_per_s"]
        line = f"muster       {run['dtype']:<9} {rate:7.2f} rows/s   loop {run['loop_s']:.2f} s   start-up {run['start_up_s']:.2f} s"
        line += f"   accuracy {run['metrics']['accuracy']:.2f}"
        peers = ["bfloat16"] if run["dtype"] == "bfloat16" else ["pipeline", "tuned"]
        line += "".join(f"   {rate / rates[p]:.2f} x {p}" for p in peers if p in rates)
        print(line)


if __name__ == "__main__":
    main()
