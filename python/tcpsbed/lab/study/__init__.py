"""Blinded comparisons with people at the browser console (docs/study.md)."""
