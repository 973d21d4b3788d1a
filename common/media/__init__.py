"""Images from which firmware boots: FAT file systems, ISO 9660, and the signed loaders on them."""
