"""What services of OpenStack have in common for those who ask them."""
