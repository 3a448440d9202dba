"""What a person runs from the Makefile."""
