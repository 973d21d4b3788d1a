"""What every other part of Ingot uses and what uses none of them."""
