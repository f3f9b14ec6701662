#!/usr/bin/env bash
# Answers the questions in as many parts as the array has tasks; the parts are merged afterwards.
#
#   job=$(sbatch --parsable --array=1-16 docs/slurm_array.sh runs/m --model M --data D --prompt narrations)
#   sbatch --dependency=afterany:$job --wrap "easg-bench merge runs/m-*-of-16 --out runs/m && easg-bench judge runs/m --judge J"
#
# A task that is stopped and requeued goes on where it was. One that ends with 3 has rows that failed: submit the same line
# again, only those are asked. (So afterany, not afterok; merge refuses parts that are missing or not whole.)
#SBATCH --job-name=easg-bench
#SBATCH --gpus-per-task=1
#SBATCH --cpus-per-task=4
#SBATCH --requeue
#SBATCH --output=%x-%A-%a.log
set -euo pipefail
out=${1:?the run folder, then options of easg-bench answer}
shift
first=${SLURM_ARRAY_TASK_MIN:-1}
part=$((SLURM_ARRAY_TASK_ID - first + 1)) parts=$SLURM_ARRAY_TASK_COUNT
exec easg-bench answer "$@" --shard "$part/$parts" --out "$out-$part-of-$parts"
