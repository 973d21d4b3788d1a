"""The only place that runs SQL: models, migrations, and one module of query functions for each noun."""
