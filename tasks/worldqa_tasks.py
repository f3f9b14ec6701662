"""lighteval tasks of WorldQA; tasks/README.md has the commands, videoqa/hosts/lighteval/tasks.py what they do.

    worldqa_open:open                 the question alone; a judge rates the answer by key points
    worldqa_mc:multiple-choice        every rotation of the options, right only if right in all; no judge
    ..._augmented, ..._augmented_8    descriptions of events in place of the video
    ..._frames                        with `lighteval custom` and tasks/video_model.py

    EASG_BENCH_DATA=build/worldqa easg-bench lighteval accelerate "model_name=MODEL,dtype=bfloat16" \\
        worldqa_mc:multiple-choice --custom-tasks tasks/worldqa_tasks.py
"""

import os

from videoqa.benchmark import track
from videoqa.hosts.lighteval.tasks import task_table

OPEN, MULTIPLE_CHOICE = track("worldqa-open"), track("worldqa-mc")
DATA = os.environ.get("EASG_BENCH_DATA") or OPEN.repo
TASKS_TABLE = task_table(OPEN, DATA) + task_table(MULTIPLE_CHOICE, DATA)
