"""The simulated device, the test cloud, and the command line that runs them."""
