"""The core of video question answering with an LLM judge: engines, prompts, judge, scores, run folders."""
