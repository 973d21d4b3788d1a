"""What any implementation of an interface must do: a class of tests for each kind, run on each implementation."""
