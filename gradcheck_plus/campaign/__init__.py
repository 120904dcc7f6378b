"""Campaigns: many cases against one subject, as independent seeded blocks, and what is made of the faults they find."""
