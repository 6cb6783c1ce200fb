"""The real engine of the swarm laboratory: real viewers, hundreds of them in a few processes."""
