# SPDX-License-Identifier: Apache-2.0
"""Measures the speed of Hugging Face's `tokenizers` on a file as one text: time_hf.py TOKENIZER_JSON TEXT [ROUNDS]

The counterpart of time_tokens: one thread, megabytes a second of processor time and of clock, the best of the rounds.
"""
import os
import sys
import time

os.environ["TOKENIZERS_PARALLELISM"] = "false"
from tokenizers import Tokenizer  # noqa: E402

tokenizer = Tokenizer.from_file(sys.argv[1])
with open(sys.argv[2], encoding="utf-8", errors="replace", newline="") as file:
    text = file.read()
size = len(text.encode("utf-8")) / 1e6
cpu = clock = 1e30
for _ in range(int(sys.argv[3]) if len(sys.argv) > 3 else 3):
    start, used = time.perf_counter(), time.process_time()
    count = len(tokenizer.encode(text, add_special_tokens=False).ids)
    cpu, clock = min(cpu, time.process_time() - used), min(clock, time.perf_counter() - start)
print(f"{count} tokens, {size / cpu:.1f} MB/s of processor time, {size / clock:.1f} MB/s of clock")
