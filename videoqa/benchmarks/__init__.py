"""One folder per benchmark; the folder's name is the registry (videoqa.benchmark)."""
