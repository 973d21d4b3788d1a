"""Moving a fleet from Ironic to Ingot and back, from database to database.

``schema`` knows Ironic's tables, ``peer`` opens its database, ``rows`` and ``nodes`` translate, ``importing`` and
``exporting`` do the work, ``report`` says what does not carry over.
"""
