"""lighteval tasks of EASG-Bench; tasks/README.md has the commands, videoqa/lighteval_tasks.py what they do.

    EASG_BENCH_JUDGE=MODEL easg-bench lighteval accelerate "model_name=MODEL,batch_size=8,dtype=bfloat16" \\
        easg_bench_narrations --custom-tasks tasks/easg_bench_tasks.py
"""

import os

import easg_bench
from videoqa.lighteval_tasks import task_table

TASKS_TABLE = task_table(os.environ.get("EASG_BENCH_DATA") or easg_bench.REPO, easg_bench.load)
