"""The paper's evaluation, ours beside the published numbers: protocol, records, tables, comparison, figures."""
