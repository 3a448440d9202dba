"""Whatever comes from outside, guided by coverage: `make fuzz`; what is found stays as a seed."""
