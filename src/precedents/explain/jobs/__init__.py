"""What an explainer is asked for: one file for each job, with the value that it gives."""
