"""The one door: every decision is asked for in here."""
