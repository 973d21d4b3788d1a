"""Who may do what: the table of default rules, and how they are enforced."""
