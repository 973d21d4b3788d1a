"""Who a caller is, and what the policy lets them do."""
