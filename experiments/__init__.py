"""The laboratory: films, scenarios, bounds and whole swarms of real processes, measured."""
