"""Runs: started, watched, ended, and recovered if their command was killed."""
