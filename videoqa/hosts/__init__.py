"""Other programs that run our benchmarks: lighteval and its logs, the samples of lmms-eval."""
