"""Making the dataset of WorldQA's questions."""
