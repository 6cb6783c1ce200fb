"""Toast: a film comes from other viewers, and from the VoD server only what comes too late."""
