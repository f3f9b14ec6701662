#!/usr/bin/env bash
# Judge speed on CUDA, a text run and a vision run, in at most 8 minutes, without a network.
#
#   speed/gpu_run.sh [OUT]        OUT (default build/gpu) gets the logs and summary.txt
#
# Carried to the machine: the checkout, a Python with the packages (PYTHON, default .venv/bin/python or python3), and the
# judge's folder (JUDGE, default build/models/smollm2; made here where demo/model.py can). VISION is a vision model's
# folder; without one the tiny random model is made, which shows the path and no skill. Where the Python has the extra
# `vllm` (beside local, video, builder and dev), the same runs go through vLLM, and its tests.
set -uo pipefail
cd "$(dirname "$0")/.."

out=${1:-build/gpu}
python=${PYTHON:-$([ -x .venv/bin/python ] && echo .venv/bin/python || echo python3)}
judge=${JUDGE:-build/models/smollm2}
vision=${VISION:-build/models/tiny-vision}
export HF_HUB_OFFLINE=1 TOKENIZERS_PARALLELISM=false PYTHONPATH=$PWD
end=$((SECONDS + 450)) # 30 of the 480 seconds are left for what comes behind
mkdir -p "$out"
summary=$out/summary.txt
: >"$summary"
failed=0

# step NAME COMMAND...: its output goes to OUT/NAME.log; it ends when the time is up
step() {
    local name=$1 began=$SECONDS code=0
    shift
    timeout --kill-after=5 $((end > SECONDS ? end - SECONDS : 1)) "$@" >"$out/$name.log" 2>&1 || code=$?
    printf '%-14s exit %-3s %4d s\n' "$name" "$code" $((SECONDS - began)) | tee -a "$summary"
    [ "$code" = 0 ] || { failed=1 && tail -n 5 "$out/$name.log"; }
}
bench() { step "$1" "$python" -m videoqa.commands "${@:2}"; }

step cuda "$python" -c 'import torch; assert torch.cuda.is_available(), "no CUDA here"; print(torch.cuda.get_device_name())'
[ "$failed" = 0 ] || exit 2

[ -d build/demo ] || step data "$python" -m builder build --source demo/data --out build/demo
[ -d build/demo-videos ] || step videos "$python" demo/videos.py --out build/demo-videos
[ -f "$judge/config.json" ] || step judge-model "$python" demo/model.py --out "$judge"
[ -f "$vision/config.json" ] || step vision-model "$python" demo/tiny_vision_model.py --out "$vision"

data=build/demo
[ -d build/easg-bench ] && data=build/easg-bench # the real questions, where they are
how=(--device cuda --dtype bfloat16 --batch-size 32 --store "$out/store")
rm -rf "$out/text" "$out/frames" "$out/two-stage" "$out/store"

bench text run --data "$data" --limit 200 --model "$judge" --judge "$judge" --prompt narrations --out "$out/text" "${how[@]}"
for prompt in frames two-stage; do
    bench "$prompt" run --data build/demo --model "$vision" --judge "$judge" --prompt "$prompt" --videos build/demo-videos \
        --frames uniform:8 --out "$out/$prompt" "${how[@]}"
done
ran=("$out/text" "$out/frames" "$out/two-stage")
if "$python" -c 'import importlib.util, sys; sys.exit(importlib.util.find_spec("vllm") is None)'; then
    share="gpu_memory_utilization=0.3" # of the GPU, for each of the model and the judge
    rm -rf "$out/vllm-text" "$out/vllm-frames"
    bench vllm-text run --data "$data" --limit 200 --model "vllm:$judge?$share" --judge "vllm:$judge?$share" \
        --prompt narrations --out "$out/vllm-text" --dtype bfloat16 --store "$out/store"
    bench vllm-frames run --data build/demo --model "vllm:$vision?$share&max_images=8" --judge "$judge" --prompt frames \
        --videos build/demo-videos --frames uniform:8 --out "$out/vllm-frames" "${how[@]}"
    ran+=("$out/vllm-text" "$out/vllm-frames")
    EASG_BENCH_VLLM=1 step vllm-tests "$python" -m pytest -q tests/test_vllm_real.py
    step side-by-side "$python" speed/side_by_side.py --model "$judge" --data "$data" --rows 200 --dtype bfloat16 \
        --device cuda --vllm-python "$python"
fi
bench report report "${ran[@]}"
step judge-speed "$python" speed/judge_speed.py --model "$judge" --data "$data" --dtype bfloat16 \
    --device cuda ${RUBRIC:+--rubric "$RUBRIC"}

echo "in all $SECONDS s; logs in $out" | tee -a "$summary"
exit $failed
