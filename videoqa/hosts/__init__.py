"""Other programs that run our benchmarks: lighteval, inspect-ai and lmms-eval, and the logs that they leave."""
