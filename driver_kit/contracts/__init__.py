"""What any implementation of an interface must do: a class of tests for each type, and some for what it may do."""
