"""Reports: what a check found, as text, JSON, repro and replay. Nothing here runs a case."""
