"""What the programs of `bench/` are made of."""
