"""lighteval tasks of EgoSchema; tasks/README.md has the commands, videoqa/hosts/lighteval/tasks.py what they do.

    egoschema:multiple-choice              the reply is read, by generation; no judge
    egoschema_likelihood:multiple-choice   lighteval's own log-probabilities of the letters

    EASG_BENCH_DATA=build/egoschema easg-bench lighteval accelerate "model_name=MODEL,dtype=bfloat16" \\
        egoschema:multiple-choice --custom-tasks tasks/egoschema_tasks.py

EASG_BENCH_CONFIG is the config of the data (default: subset).
"""

import os

from videoqa.benchmark import track
from videoqa.hosts.lighteval.tasks import task_table

EGOSCHEMA = track("egoschema")
TASKS_TABLE = task_table(
    EGOSCHEMA, os.environ.get("EASG_BENCH_DATA") or EGOSCHEMA.repo, os.environ.get("EASG_BENCH_CONFIG")
)
