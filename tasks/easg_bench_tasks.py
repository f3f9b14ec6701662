"""lighteval tasks of EASG-Bench; tasks/README.md has the commands, videoqa/hosts/lighteval/tasks.py what they do.

    EASG_BENCH_JUDGE=MODEL easg-bench lighteval accelerate "model_name=MODEL,batch_size=8,dtype=bfloat16" \\
        easg_bench_narrations --custom-tasks tasks/easg_bench_tasks.py
"""

import os

from videoqa.benchmark import track
from videoqa.hosts.lighteval.tasks import task_table

EASG = track("easg-bench")
TASKS_TABLE = task_table(EASG, os.environ.get("EASG_BENCH_DATA") or EASG.repo)
