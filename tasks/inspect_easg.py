"""inspect-ai tasks of the three benchmarks; tasks/README.md has the commands, videoqa/hosts/inspect_ai.py what they do.

    inspect eval tasks/inspect_easg.py@easg_bench --model openai/ID -T data=build/easg-bench -T judge=JUDGE \\
        -T prompt=narrations
"""

from inspect_ai import Task, task

from videoqa.hosts.inspect_ai import inspect_task


@task
def easg_bench(
    data: str | None = None,
    config: str | None = None,
    prompt: str | None = None,
    judge: str | None = None,
    rubric: str | None = None,
    mode: str | None = None,
    sampling: str | None = None,
) -> Task:
    """EASG-Bench, rated by a judge."""
    given = {"judge": judge, "rubric": rubric, "mode": mode, "sampling": sampling}
    return inspect_task("easg-bench", data=data, config=config, prompt=prompt, **given)


@task
def egoschema(data: str | None = None, config: str | None = None, prompt: str | None = None) -> Task:
    """EgoSchema; the reply is read."""
    return inspect_task("egoschema", data=data, config=config, prompt=prompt)


@task
def worldqa_open(
    data: str | None = None,
    config: str | None = None,
    prompt: str | None = None,
    judge: str | None = None,
    rubric: str | None = None,
    mode: str | None = None,
    sampling: str | None = None,
) -> Task:
    """WorldQA's open answers, rated by a judge."""
    given = {"judge": judge, "rubric": rubric, "mode": mode, "sampling": sampling}
    return inspect_task("worldqa-open", data=data, config=config, prompt=prompt, **given)


@task
def worldqa_mc(data: str | None = None, config: str | None = None, prompt: str | None = None) -> Task:
    """WorldQA's multiple choice in every rotation of the options; the reply is read."""
    return inspect_task("worldqa-mc", data=data, config=config, prompt=prompt)
