"""Builders of what a real machine boots: the deploy ramdisk with the real ironic-python-agent, and a test image.

    python3 -m ramdisk DIRECTORY [--cache CACHE]      build both, or find them, and print where they are (needs root)

``DIRECTORY/deploy``, ``DIRECTORY/image`` and ``DIRECTORY/netboot`` lead to the newest results, which are kept in
``CACHE``.

Only the standard library is used, and tools of Debian packages: mmdebstrap, cpio and zstd for the ramdisk; mtools,
gdisk, e2fsprogs and syslinux for the image.
"""
