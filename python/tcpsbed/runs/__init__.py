"""Runs: started, watched, ended, and recovered if their command was killed."""

MOST_SEEDS = 10_000
"""Most runs of packets, each with a seed of its own."""
