"""WorldQA (arXiv 2405.03272): questions on videos with sound that ask for knowledge of the world as well."""
