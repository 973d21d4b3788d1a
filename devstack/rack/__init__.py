"""The virtual rack (``ingot-rack``): machines with real BMCs, simulated or emulated by QEMU.

A rack stands in for hardware when trying Ingot out and in tests. It imports nothing else of Ingot and knows
nothing of it: the two meet on the wire, by IPMI, Redfish and HTTP.

===================  ================================================================================
``main``             the command; ``config`` its settings; ``process`` starts it from tests and scripts
``rack``             all machines, on one event loop (``loop``); ``control`` is its HTTP API
``machine``          what all have: power, boot devices (``nvram``); ``faults`` is what can go wrong with it
``simulated``        machines without insides: what boots and runs is acted
``qemu``             machines in QEMU (``qemu_command``), with a serial ``console``
``bmc``              its BMC, over real IPMI; ``redfish`` is the same over Redfish, with habits of ``vendors``
``boot``             network boot: iPXE scripts; ``media`` and ``iso`` are virtual media and what they start;
                     ``fat`` reads those that only have settings
``disks``            sparse files; ``partitions``, ``raid`` and ``images`` are what gets written to them
``agent``            the ramdisk's agent: lookup and heartbeat (``service_client``), with ``tls``
``agent_api``        its HTTP API; ``commands`` runs commands, ``extensions`` lists them
``standby``          the commands around the image; ``root_device`` finds where it goes; ``logs``
``steps``            the commands around steps; ``erasing`` is how disks are erased
``readback``         proof, for tests and scripts, that a disk holds an image
===================  ================================================================================
"""
