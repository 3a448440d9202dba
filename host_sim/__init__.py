"""The simulated device, the test cloud, and what runs them: see spec of the command line in README."""
