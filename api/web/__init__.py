"""The web machinery: one call, its fields, filters, versions and answers, whatever the resource."""
