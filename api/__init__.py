"""The Bare Metal API: a Flask application with one module per resource."""
