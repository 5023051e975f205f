"""Experiments and published works that use the testbed from outside."""
