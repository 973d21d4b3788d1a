"""The Redfish faces of the rack's machines, beside their IPMI; names and paths are those of DMTF's schemas.

===================  ================================================================================
``server``           the ports: one of all machines, one per machine; TLS
``service``          what a port serves: logins, faults, ETags, the way to a resource
``routing``          resources by path; ``resources`` lists all of them
``board``            what a machine's BMC and firmware remember, and what a boot changes
``messages``         messages and errors with extended information
===================  ================================================================================

Whose habits a face has is data of ``ingot.rack.vendors``. Each other module is one part of the tree: ``root``,
``sessions``, ``tasks``, ``events``, ``systems``, ``drives`` (virtual media), ``managers``, and so on.
"""
