"""Commands that keep a store whole: disks, scrub, status."""
