"""The swarm laboratory: scenarios as data, two engines, and what they showed."""
