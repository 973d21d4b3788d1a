"""The conductor: owns nodes by the hash ring, locks them with tasks, drives their flows step by step."""
