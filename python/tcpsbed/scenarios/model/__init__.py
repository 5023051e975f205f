"""The tables of a scenario file, one module for each kind of thing."""
