"""The functions that the YAML files here name; videoqa/hosts/lmms_eval.py says what they do.

Each name in a YAML file is a function of its own, since lmms-eval tells them nothing of the task.
"""

from functools import partial

from videoqa.hosts.lmms_eval import checked, figure, nothing_to_see, results, text

__all__ = ["figure", "nothing_to_see", "text"]

easg_data = partial(checked, "easg-bench")
easg_blind = partial(results, "easg-bench", "blind")
easg_narrations = partial(results, "easg-bench", "narrations")
egoschema_data = partial(checked, "egoschema")
egoschema_blind = partial(results, "egoschema", "blind")
worldqa_open_data = partial(checked, "worldqa-open")
worldqa_open_blind = partial(results, "worldqa-open", "blind")
worldqa_mc_data = partial(checked, "worldqa-mc")
worldqa_mc_blind = partial(results, "worldqa-mc", "blind")
