"""Reports about runs: a page for the browser, tables for the terminal, runs side by side."""
