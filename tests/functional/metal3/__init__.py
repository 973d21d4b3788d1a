"""What Metal3's operator sends, for each kind of BMC that it knows, against Ingot and machines of the rack."""
