"""DevStack's plugin: its phases and the scripts for grenade, against what DevStack and grenade promise to plugins."""
