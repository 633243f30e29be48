"""`make bench`: what things cost, side by side in one run. Ratios are meant to be compared; seconds on a shared machine are noise."""
