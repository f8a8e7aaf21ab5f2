"""What a search did, as one page of HTML that needs nothing else."""
