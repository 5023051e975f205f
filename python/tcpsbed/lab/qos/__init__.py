"""Conformity: the numbers of a run against a profile of limits."""
