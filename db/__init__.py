"""The only place that talks SQL: models, migrations, and one module of query functions for each noun."""
