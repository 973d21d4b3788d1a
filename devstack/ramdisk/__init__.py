"""What a real machine boots in tests: the agent's ramdisk of the profile small, and a test image.

    python3 -m ramdisk DIRECTORY [--cache CACHE]      build all, or find it, and print where it is (needs root)

``DIRECTORY/deploy``, ``DIRECTORY/image`` and ``DIRECTORY/netboot`` lead to the newest results, which are kept in
``CACHE``. ``ingot.image`` makes the ramdisk. The image needs of Debian mtools, gdisk, e2fsprogs and syslinux.
"""
