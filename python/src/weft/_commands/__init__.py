"""What the command weft does."""
