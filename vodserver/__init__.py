"""The VoD server: a store of films over many disks, served over HTTP and seeded to the swarm."""
