"""How fast the product is, as ratios to the bare emulator."""
