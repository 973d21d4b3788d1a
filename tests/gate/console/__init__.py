"""The console in a browser, before a running Ingot and a rack."""
