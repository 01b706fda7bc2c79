"""Backups: one compressed file with the rows of every table, the same for both databases."""
