"""How the admin writes dates and times, by language."""
