"""EgoSchema (arXiv 2308.09126): five options for a question about three minutes of first-person video."""
