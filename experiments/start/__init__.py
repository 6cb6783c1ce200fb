"""How long until the first picture: Toast beside plain HTTP, on an emulated network."""
