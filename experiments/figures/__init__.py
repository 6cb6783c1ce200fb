"""The source's figures: scenarios in cells, runs that are kept, claims, pictures, a report."""
