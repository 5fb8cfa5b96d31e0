"""What is played: one table per game (title, ROM checksum, named RAM bytes) and the named sets of games."""
