"""Extensions of ironic-python-agent: ``iscsi`` exports a disk, ``ssh`` lets the conductor in."""
